-- The foundation. Times are timestamptz and come from the database clock. Values written by user code are `json`,
-- not `jsonb`: jsonb refuses \u0000 and lone surrogates, and one such value must never fail a whole batch.

-- One row per running component. A job is alive while lease_until lies in the future, by the database's clock.
CREATE TABLE job (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind         text NOT NULL CHECK (kind IN ('scheduler', 'dag_processor', 'triggerer', 'api', 'backfill')),
  state        text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'stopped', 'dead')),
  hostname     text NOT NULL,
  pid          integer NOT NULL,
  version      text NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT now(),
  heartbeat_at timestamptz NOT NULL DEFAULT now(),
  lease_until  timestamptz NOT NULL,
  ended_at     timestamptz
);
CREATE INDEX job_running ON job (kind, lease_until) WHERE state = 'running';

-- Code, by content hash. Never updated; two processors storing the same hash store the same bytes.
CREATE TABLE bundle (
  hash        text PRIMARY KEY,
  code        text NOT NULL,
  source_map  text,
  created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE dag (
  dag_id              text PRIMARY KEY,
  file                text NOT NULL,
  is_paused           boolean NOT NULL,
  is_stale            boolean NOT NULL DEFAULT false,
  version_id          bigint,
  -- Of the current version: such DAGs are looked for at every heartbeat.
  is_continuous       boolean NOT NULL DEFAULT false,
  last_parsed_at      timestamptz NOT NULL DEFAULT now(),
  -- The next run the schedule asks for; next_run_after NULL = none. Advanced in the transaction that creates the run.
  next_logical_date   timestamptz,
  next_interval_start timestamptz,
  next_interval_end   timestamptz,
  next_run_after      timestamptz
);
CREATE INDEX dag_due ON dag (next_run_after) WHERE next_run_after IS NOT NULL AND NOT is_paused AND NOT is_stale;
CREATE INDEX dag_continuous ON dag (dag_id) WHERE is_continuous;
CREATE INDEX dag_file ON dag (file);
CREATE INDEX dag_current_version ON dag (version_id);

-- A version is made when the code of a DAG's file changes, and never otherwise.
CREATE TABLE dag_version (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_id      text NOT NULL REFERENCES dag ON DELETE CASCADE,
  number      integer NOT NULL,
  bundle_hash text NOT NULL REFERENCES bundle,
  manifest    jsonb NOT NULL,
  source      text NOT NULL,
  -- What claims ask of a version, beside the manifest: that may have megabytes and would be unpacked at each look.
  task_count      integer NOT NULL GENERATED ALWAYS AS (coalesce(jsonb_array_length(manifest->'tasks'), 0)) STORED,
  max_active_runs integer NOT NULL GENERATED ALWAYS AS (coalesce((manifest->>'maxActiveRuns')::integer, 16)) STORED,
  created_at  timestamptz NOT NULL DEFAULT now(),
  UNIQUE (dag_id, number)
);
CREATE INDEX dag_version_bundle ON dag_version (bundle_hash);
ALTER TABLE dag ADD CONSTRAINT dag_version_fk FOREIGN KEY (version_id) REFERENCES dag_version;

CREATE TABLE import_error (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  file       text NOT NULL UNIQUE,
  message    text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- owner_job + generation are the run's lock: every write of an owner names both and fails when either moved on.
-- A manual edit (clear, mark, cancel) bumps the generation, so that the owner reloads before it writes again.
CREATE TABLE dag_run (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_id         text NOT NULL REFERENCES dag ON DELETE CASCADE,
  run_id         text NOT NULL,
  run_type       text NOT NULL CHECK (run_type IN ('scheduled', 'manual', 'backfill', 'operator_triggered', 'asset_triggered', 'signal_triggered')),
  state          text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'success', 'failed')),
  logical_date   timestamptz,
  interval_start timestamptz,
  interval_end   timestamptz,
  run_after      timestamptz NOT NULL DEFAULT now(),
  conf           json NOT NULL DEFAULT '{}',
  version_id     bigint NOT NULL REFERENCES dag_version,
  triggered_by   text NOT NULL,
  triggering_user text,
  note           text,
  end_reason     text,
  clear_number   integer NOT NULL DEFAULT 0,
  created_at     timestamptz NOT NULL DEFAULT now(),
  queued_at      timestamptz NOT NULL DEFAULT now(),
  started_at     timestamptz,
  ended_at       timestamptz,
  owner_job      bigint REFERENCES job,
  generation     bigint NOT NULL DEFAULT 0,
  UNIQUE (dag_id, run_id)
);
CREATE UNIQUE INDEX dag_run_logical_date ON dag_run (dag_id, logical_date) WHERE logical_date IS NOT NULL;
-- The scheduler's only ways in: history is in none of them.
CREATE INDEX dag_run_queued ON dag_run (run_after, id) WHERE state = 'queued';
CREATE INDEX dag_run_queued_of_dag ON dag_run (dag_id, run_after, id) WHERE state = 'queued';
CREATE INDEX dag_run_backlog ON dag_run (dag_id) WHERE state = 'queued' AND run_type = 'scheduled';
CREATE INDEX dag_run_running ON dag_run (dag_id, owner_job) WHERE state = 'running';
CREATE INDEX dag_run_owner ON dag_run (owner_job) WHERE owner_job IS NOT NULL;
-- Retention's.
CREATE INDEX dag_run_ended ON dag_run (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX dag_run_version ON dag_run (version_id);

-- The hot table. Its one index never changes after insert, so every state change is a HOT update: leave it that way.
CREATE TABLE task_instance (
  dag_run_id      bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id         text NOT NULL,
  map_index       integer NOT NULL DEFAULT -1,
  state           text NOT NULL DEFAULT 'none' CHECK (state IN ('none', 'scheduled', 'queued', 'running', 'restarting',
                    'up_for_retry', 'up_for_reschedule', 'deferred', 'success', 'failed', 'skipped', 'upstream_failed', 'removed')),
  try_number      integer NOT NULL DEFAULT 0,
  max_tries       integer NOT NULL DEFAULT 0,
  infra_losses    integer NOT NULL DEFAULT 0,
  -- Who may speak for this instance now: new at every dispatch and every resume.
  attempt         uuid,
  scheduled_at    timestamptz,
  queued_at       timestamptz,
  started_at      timestamptz,
  ended_at        timestamptz,
  retry_at        timestamptz,
  pool            text NOT NULL,
  pool_slots      integer NOT NULL,
  -- A second counter the instance occupies one slot of (max active per DAG): also a row of `pool`.
  limit_key       text,
  queue           text NOT NULL,
  priority_weight integer NOT NULL,
  executor        text,
  operator        text NOT NULL,
  executor_job    bigint,
  hostname        text,
  pid             integer,
  reason          text,
  note            text,
  -- Deferral: where to resume, with what, on which trigger, until when.
  next_method     text,
  next_kwargs     json,
  trigger_id      bigint,
  trigger_timeout timestamptz,
  PRIMARY KEY (dag_run_id, task_id, map_index)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- Tries that are over and were followed by another: retried, lost or cleared. The current try is in task_instance.
CREATE TABLE task_attempt (
  attempt      uuid PRIMARY KEY,
  dag_run_id   bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id      text NOT NULL,
  map_index    integer NOT NULL,
  try_number   integer NOT NULL,
  state        text NOT NULL,
  scheduled_at timestamptz,
  queued_at    timestamptz,
  started_at   timestamptz,
  ended_at     timestamptz,
  executor_job bigint,
  hostname     text,
  pid          integer,
  reason       text
);
CREATE INDEX task_attempt_instance ON task_attempt (dag_run_id, task_id, map_index, try_number);

-- One row per wait, so that a timeline can show it.
CREATE TABLE deferral (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id  bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id     text NOT NULL,
  map_index   integer NOT NULL,
  attempt     uuid NOT NULL,
  trigger_id  bigint,
  deferred_at timestamptz NOT NULL DEFAULT now(),
  fired_at    timestamptz,
  resumed_at  timestamptz
);
CREATE INDEX deferral_instance ON deferral (dag_run_id, task_id, map_index);

CREATE TABLE trigger (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        text NOT NULL,
  args        json NOT NULL,
  bundle_hash text REFERENCES bundle,
  owner_job   bigint REFERENCES job,
  generation  bigint NOT NULL DEFAULT 0,
  wake_at     timestamptz,
  created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX trigger_owner ON trigger (owner_job);
CREATE INDEX trigger_bundle ON trigger (bundle_hash);

-- Everything that happened, in commit order: readers go by (tx, id), bounded by pg_snapshot_xmin.
CREATE TABLE signal (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tx         xid8 NOT NULL DEFAULT pg_current_xact_id(),
  namespace  text NOT NULL,
  key        text NOT NULL,
  value      json,
  sender     text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX signal_created ON signal USING brin (created_at);

CREATE TABLE signal_listener (
  name       text PRIMARY KEY,
  tx         xid8 NOT NULL,
  signal_id  bigint NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE xcom (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id    text NOT NULL,
  map_index  integer NOT NULL DEFAULT -1,
  key        text NOT NULL,
  value      json,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (dag_run_id, task_id, map_index, key)
);

-- Slots, and how many are taken: changed only in the transaction that changes the task's state. slots < 0 = no limit.
-- Names starting with '@' are the engine's own ("@dag/task": max active instances of a task) and are not listed.
CREATE TABLE pool (
  name             text PRIMARY KEY,
  slots            integer NOT NULL,
  occupied         integer NOT NULL DEFAULT 0 CHECK (occupied >= 0),
  include_deferred boolean NOT NULL DEFAULT false,
  description      text
) WITH (fillfactor = 20);
INSERT INTO pool (name, slots, description) VALUES ('default_pool', 128, 'Every task that names no other pool');

-- The best task each scheduler holds back for want of a slot: a freed slot goes to the highest of all schedulers.
CREATE TABLE pool_waiter (
  pool            text NOT NULL REFERENCES pool ON DELETE CASCADE,
  job_id          bigint NOT NULL REFERENCES job ON DELETE CASCADE,
  priority_weight integer NOT NULL,
  logical_date    timestamptz,
  map_index       integer NOT NULL,
  slots           integer NOT NULL,
  PRIMARY KEY (pool, job_id)
);

-- Callbacks that a worker must run: rows, so that none is missed when a process dies.
CREATE TABLE callback (
  id         uuid PRIMARY KEY,
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id    text,
  map_index  integer,
  event      text NOT NULL CHECK (event IN ('success', 'failure', 'retry')),
  try_number integer NOT NULL DEFAULT 0,
  error      json,
  owner_job  bigint REFERENCES job,
  tries      integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX callback_run ON callback (dag_run_id);
CREATE INDEX callback_owner ON callback (owner_job);

-- value and secrets are sealed (AES-256-GCM) with the installation's key; the row's own key is authenticated with it.
CREATE TABLE variable (
  key         text PRIMARY KEY,
  sealed      bytea NOT NULL,
  description text,
  updated_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE connection (
  conn_id     text PRIMARY KEY,
  conn_type   text NOT NULL,
  description text,
  host        text,
  port        integer,
  login       text,
  schema      text,
  sealed      bytea,
  updated_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_token (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text NOT NULL,
  sha256       bytea NOT NULL UNIQUE,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  last_used_at timestamptz
);

-- Same key and same request: the stored answer again. Same key, other request: refused.
CREATE TABLE idempotency_key (
  key          text NOT NULL,
  token_id     bigint NOT NULL REFERENCES api_token ON DELETE CASCADE,
  request_hash bytea NOT NULL,
  status       integer,
  body         json,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (token_id, key)
);

CREATE TABLE audit_event (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at         timestamptz NOT NULL DEFAULT now(),
  actor      text NOT NULL,
  action     text NOT NULL,
  dag_id     text,
  run_id     text,
  task_id    text,
  map_index  integer,
  details    json
);

-- Raises when a guarded statement touched fewer rows than it must: the whole transaction is then void.
-- SQLSTATE class TW: TW001 fenced (owner or generation moved on), TW002 a pool has no room, TW003 a state moved on.
CREATE FUNCTION tw_require(ok boolean, code text, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT ok THEN
    RAISE EXCEPTION '%', what USING ERRCODE = code;
  END IF;
END $$;
