-- Who asked for a run: the instance of a task, in a run of its own.
ALTER TABLE dag_run
  ADD COLUMN parent_run_id    bigint REFERENCES dag_run ON DELETE SET NULL,
  ADD COLUMN parent_task_id   text,
  ADD COLUMN parent_map_index integer,
  -- Of a sub-DAG: the try that it is a part of, and no longer than that it lives. NULL: a run on its own.
  ADD COLUMN parent_try       integer;
CREATE INDEX dag_run_parent ON dag_run (parent_run_id) WHERE parent_run_id IS NOT NULL;
-- Those that have to be looked after.
CREATE INDEX dag_run_sub_dag ON dag_run (id) WHERE parent_try IS NOT NULL AND state IN ('queued', 'running');
