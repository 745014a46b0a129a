-- One table for all that is to be delivered: what missed deadlines tell, and the notices of tasks, groups and runs that have
-- ended or are tried again. Each row is written in the transaction of its event.
ALTER TABLE deadline_delivery RENAME TO delivery;
ALTER TABLE delivery RENAME COLUMN missed_at TO occurred_at;
ALTER TABLE delivery RENAME CONSTRAINT deadline_delivery_pkey TO delivery_pkey;
ALTER INDEX deadline_delivery_of RENAME TO delivery_deadline;
ALTER INDEX deadline_delivery_due RENAME TO delivery_due;
ALTER INDEX deadline_delivery_dead RENAME TO delivery_dead;

ALTER TABLE delivery
  ALTER COLUMN deadline_id DROP NOT NULL,
  ALTER COLUMN occurred_at SET DEFAULT now(),
  ADD COLUMN dag_run_id bigint REFERENCES dag_run ON DELETE CASCADE,
  ADD COLUMN event text NOT NULL DEFAULT 'deadline' CHECK (event IN ('success', 'failure', 'retry', 'deadline')),
  -- NULL: of the run, or of a group.
  ADD COLUMN task_id text,
  ADD COLUMN group_id text,
  ADD COLUMN map_index integer NOT NULL DEFAULT -1,
  -- What is said, as it was when it happened: the run may be cleared before it is delivered.
  ADD COLUMN report json,
  -- Of a failed group or run: the task instance that failed first, as its row was then.
  ADD COLUMN cause json;

UPDATE delivery y SET dag_run_id = d.dag_run_id, task_id = nullif(d.task_id, ''),
  report = json_build_object('event', 'deadline.missed', 'dagId', r.dag_id, 'runId', r.run_id,
    'taskId', nullif(d.task_id, ''),
    'logicalDate', to_char(r.logical_date AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'ordinal', d.ordinal, 'after', d.counts_from,
    'dueAt', to_char(y.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
FROM deadline d JOIN dag_run r ON r.id = d.dag_run_id WHERE d.id = y.deadline_id;

ALTER TABLE delivery
  ALTER COLUMN dag_run_id SET NOT NULL,
  ALTER COLUMN report SET NOT NULL,
  ALTER COLUMN event DROP DEFAULT,
  DROP COLUMN due_at,
  ADD CONSTRAINT delivery_deadline_check CHECK ((event = 'deadline') = (deadline_id IS NOT NULL));
CREATE INDEX delivery_run ON delivery (dag_run_id);
