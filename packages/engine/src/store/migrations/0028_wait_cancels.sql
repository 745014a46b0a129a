-- A wait that ends without its event: its `onCancel` is a callback, written in the transaction that ends the wait.

-- What the `onCancel` of the wait needs besides the wait itself: the bundle, the trigger's call, and the inputs of a mapped
-- operator. NULL: there is none to run. Kept here because the trigger's row is gone as soon as no wait is left for it.
ALTER TABLE deferral ADD COLUMN on_cancel json;

-- A cancelled run may be deleted before its callbacks have run: a callback of a wait knows all that it needs, and has no run.
ALTER TABLE callback ALTER COLUMN dag_run_id DROP NOT NULL,
  DROP CONSTRAINT callback_event_check,
  ADD CONSTRAINT callback_event_check CHECK (event IN ('success', 'failure', 'retry', 'deadline', 'cancel')),
  ADD COLUMN bundle_hash text REFERENCES bundle,
  -- How the wait ended, and as it was begun.
  ADD COLUMN wait json,
  -- The facts of its run.
  ADD COLUMN run json,
  ADD CONSTRAINT callback_run_check CHECK ((event = 'cancel') = (dag_run_id IS NULL)),
  ADD CONSTRAINT callback_wait_check
    CHECK (event <> 'cancel' OR (bundle_hash IS NOT NULL AND wait IS NOT NULL AND run IS NOT NULL));
CREATE INDEX callback_bundle ON callback (bundle_hash) WHERE bundle_hash IS NOT NULL;
-- Those that no job has taken yet, the oldest first.
CREATE INDEX callback_unowned ON callback (created_at) WHERE owner_job IS NULL;
