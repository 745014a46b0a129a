-- The latest run of each DAG, without a read of the DAG's whole history: lists of DAGs, `@latest`, pages of a DAG's runs.
CREATE INDEX dag_run_latest ON dag_run (dag_id, run_after, id);
