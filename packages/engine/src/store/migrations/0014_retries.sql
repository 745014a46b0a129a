-- A run that failed and is tried again stays the same run: which try it is at, and when the next one begins.
ALTER TABLE dag_run ADD COLUMN try_number integer NOT NULL DEFAULT 1, ADD COLUMN retry_at timestamptz;

-- Groups with retries or callbacks, once something is to be remembered about them: without a row, one is at its first try.
-- Written by the run's owner, in the batch of what it follows from.
CREATE TABLE run_group (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  group_id   text NOT NULL,
  -- 'waiting': failed, and the next try begins at retry_at; the end states: ended for good, whoever waits for it was told.
  state      text NOT NULL CHECK (state IN ('open', 'waiting', 'success', 'failed', 'skipped')),
  try_number integer NOT NULL,
  max_tries  integer NOT NULL,
  retry_at   timestamptz,
  PRIMARY KEY (dag_run_id, group_id)
);

ALTER TABLE callback ADD COLUMN group_id text;
