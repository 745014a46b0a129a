-- Why a DAG is paused, when nobody did it by hand; and since when its failures count: one that is unpaused begins anew.
ALTER TABLE dag ADD COLUMN pause_reason text, ADD COLUMN failures_since timestamptz;

-- DAGs whose schedule is a class of their bundle. It is asked in a process of its own, outside of any transaction; the
-- answer is the plan in the row of `dag`. Whoever writes both rows locks that of `dag` first.
CREATE TABLE dag_timetable (
  dag_id              text PRIMARY KEY REFERENCES dag ON DELETE CASCADE,
  -- When it is to be asked; while somebody asks, when he is taken for dead. NULL: the plan is the answer.
  ask_at              timestamptz,
  -- Grows whenever it is asked, and whenever there is something new to ask: an answer to an older question is dropped.
  asked               bigint NOT NULL DEFAULT 0,
  -- The run that it asked for last.
  last_logical_date   timestamptz,
  last_interval_start timestamptz,
  last_interval_end   timestamptz,
  -- In a row; with what the last one said.
  failures            integer NOT NULL DEFAULT 0,
  error               json
);
CREATE INDEX dag_timetable_ask ON dag_timetable (ask_at) WHERE ask_at IS NOT NULL;
