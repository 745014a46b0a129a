-- Since when owner_job has owned the run; meaningless while there is none.
ALTER TABLE dag_run ADD COLUMN owned_since timestamptz;
