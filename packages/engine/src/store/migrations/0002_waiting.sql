-- Waiting. A deferral is one wait of one attempt; a trigger is what it waits for, shared by all that wait for the same.
-- Nothing was ever written to the first version of these tables and columns.
DROP TABLE deferral;
DROP TABLE trigger;
ALTER TABLE task_instance DROP COLUMN next_method, DROP COLUMN next_kwargs, DROP COLUMN trigger_id,
  DROP COLUMN trigger_timeout,
  -- The wait this try goes on from: the attempt that deferred. NULL: it begins at the beginning.
  ADD COLUMN step uuid,
  -- started_at is that of the try; an attempt that goes on after a wait has a start of its own.
  ADD COLUMN attempt_started_at timestamptz,
  -- Deferred, and still counted by its pool: decided when it defers, so that no later change of the pool can miscount it.
  ADD COLUMN keeps_slot boolean NOT NULL DEFAULT false;

-- What a running component tells about itself, e.g. how many triggers it runs.
ALTER TABLE job ADD COLUMN facts json;

CREATE TABLE trigger (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Of all that makes two waits the same (kind, arguments, bundle, queue): equal ones share one row and one poll.
  fingerprint bytea NOT NULL UNIQUE,
  kind        text NOT NULL,
  args        json NOT NULL,
  -- NULL: built in.
  bundle_hash text REFERENCES bundle,
  queue       text NOT NULL,
  replicas    smallint NOT NULL CHECK (replicas IN (1, 2)),
  -- Set: the schedule of that DAG, one run per event.
  dag_id      text REFERENCES dag ON DELETE CASCADE,
  -- Nobody has to run it before.
  wake_at     timestamptz NOT NULL,
  -- Set: it fires at wake_at by itself, with this payload; nobody has to run it at all.
  timed       json,
  owner_job   bigint REFERENCES job,
  -- The second triggerer of a trigger with two replicas.
  standby_job bigint REFERENCES job,
  claimed_at  timestamptz,
  polled_at   timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80);
CREATE INDEX trigger_timed ON trigger (wake_at) WHERE timed IS NOT NULL;
CREATE INDEX trigger_free ON trigger (queue, wake_at) WHERE timed IS NULL AND owner_job IS NULL;
CREATE INDEX trigger_owner ON trigger (owner_job) WHERE owner_job IS NOT NULL;
CREATE INDEX trigger_standby ON trigger (standby_job) WHERE standby_job IS NOT NULL;
CREATE INDEX trigger_single ON trigger (queue, wake_at) WHERE replicas = 2 AND standby_job IS NULL;
CREATE INDEX trigger_bundle ON trigger (bundle_hash);
CREATE UNIQUE INDEX trigger_dag ON trigger (dag_id) WHERE dag_id IS NOT NULL;

-- Who may write what: the owner of the run inserts and ends; whoever fires the trigger sets fired_at and outcome, once.
-- The reference of waits_on makes it impossible to wait for a trigger that is gone.
CREATE TABLE deferral (
  attempt     uuid PRIMARY KEY,
  dag_run_id  bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id     text NOT NULL,
  map_index   integer NOT NULL,
  try_number  integer NOT NULL,
  -- For the record; waits_on is NULL from the moment it waits no more.
  trigger_id  bigint NOT NULL,
  waits_on    bigint REFERENCES trigger,
  kind        text NOT NULL,
  name        text,
  method      text,
  kwargs      json NOT NULL,
  on_timeout  text NOT NULL CHECK (on_timeout IN ('fail', 'fatal', 'skip', 'resume')),
  on_failure  text NOT NULL CHECK (on_failure IN ('fail', 'resume')),
  timeout_at  timestamptz,
  deferred_at timestamptz NOT NULL DEFAULT now(),
  fired_at    timestamptz,
  -- {"kind":"event","payload":…}, {"kind":"failed","error":…}, {"kind":"ending","ending":…} or {"kind":"timeout"}
  outcome     json,
  -- When its owner had taken notice, and what followed.
  ended_at    timestamptz,
  end_kind    text CHECK (end_kind IN ('resumed', 'finished', 'timeout', 'cancelled'))
) WITH (fillfactor = 80);
CREATE INDEX deferral_waiting ON deferral (waits_on) WHERE waits_on IS NOT NULL;
-- For the list of what waits, the longest first.
CREATE INDEX deferral_since ON deferral (deferred_at) WHERE waits_on IS NOT NULL;
CREATE INDEX deferral_fired ON deferral (dag_run_id) WHERE fired_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX deferral_instance ON deferral (dag_run_id, task_id, map_index);

-- What function tasks have done once, by name, in each try.
CREATE TABLE journal (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id    text NOT NULL,
  map_index  integer NOT NULL,
  try_number integer NOT NULL,
  name       text NOT NULL,
  value      json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (dag_run_id, task_id, map_index, try_number, name)
);

-- Calls of webhooks, which triggers wait for by name.
CREATE INDEX signal_webhook ON signal (key, created_at) WHERE namespace = 'webhook';
