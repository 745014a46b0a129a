-- The data model, in this order: services, code, schedules and backfills, runs and tasks, execution, pools, waits, signals, assets,
-- run drives, notices, outputs, settings, access.
--
-- Times are timestamptz and come from the database clock. Values written by user code are `json`, not `jsonb`: jsonb
-- rejects \u0000 and lone surrogates, and one such value must not fail a whole batch.

-- Services -------------------------------------------------------------------------------------------------------

-- One row per running service. A job is alive while lease_until is in the future, by the database's clock. A 'driver' is
-- a user's program that submits runs and owns them as a scheduler does.
CREATE TABLE job (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind         text NOT NULL CHECK (kind IN ('scheduler', 'dag_processor', 'triggerer', 'api', 'backfill', 'driver', 'worker')),
  state        text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'stopped', 'dead')),
  hostname     text NOT NULL,
  pid          integer NOT NULL,
  version      text NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT now(),
  heartbeat_at timestamptz NOT NULL DEFAULT now(),
  lease_until  timestamptz NOT NULL,
  ended_at     timestamptz,
  -- Facts reported by the service itself, e.g. the number of triggers it runs.
  facts        json,
  -- The DAGs whose runs it claims; NULL: all. Peers hand it no runs of other DAGs.
  dags         text[],
  -- How many tasks a scheduler can run at once (NULL: no limit, or not a scheduler), and how many more it could start now
  -- (negative: tasks that wait for slots). Peers read both before they leave a queued run to it, or hand one over.
  slots        integer,
  free_slots   integer NOT NULL DEFAULT 0,
  -- Of a worker: its name, the queues that it serves (NULL: the worker of one pod, which serves a single assignment), the
  -- token with which it registered, and whether a user asked it to start nothing more. `slots` is its concurrency.
  name         text,
  queues       text[],
  token_id     bigint,
  is_draining  boolean NOT NULL DEFAULT false
);
CREATE INDEX job_running ON job (kind, lease_until) WHERE state = 'running';
-- Read with every renewal of a lease: jobs that have ended recently.
CREATE INDEX job_ended ON job (ended_at) WHERE state <> 'running';

-- Code -----------------------------------------------------------------------------------------------------------

-- Code shared by many bundles (the SDK's part), stored once by content hash. Never updated.
CREATE TABLE shared_chunk (
  hash       text PRIMARY KEY,
  -- The names that its code declares.
  names      text[] NOT NULL,
  code       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Code by content hash. Never updated; processors that store the same hash store the same bytes. A task runs `head`, then
-- the shared chunk, then `code`.
CREATE TABLE bundle (
  hash         text PRIMARY KEY,
  head         text NOT NULL DEFAULT '',
  shared_chunk_hash text REFERENCES shared_chunk,
  code         text NOT NULL,
  source_map   text,
  created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bundle_shared_chunk ON bundle (shared_chunk_hash);

-- Files that bundles require besides their code, stored once by content hash. Never updated.
CREATE TABLE bundled_file (
  hash       text PRIMARY KEY,
  content    bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Which bundle requires which file. The file's path in the bundle is part of the bundle's code.
CREATE TABLE bundle_file (
  bundle_hash text NOT NULL REFERENCES bundle ON DELETE CASCADE,
  file_hash   text NOT NULL REFERENCES bundled_file,
  PRIMARY KEY (bundle_hash, file_hash)
);
CREATE INDEX bundle_file_file ON bundle_file (file_hash);

CREATE TABLE dag (
  dag_id              text PRIMARY KEY,
  file                text NOT NULL, -- path in the DAG folder
  is_paused           boolean NOT NULL,
  -- Why it is paused, unless a user paused it.
  pause_reason        text,
  -- Failures before this time do not count for an automatic pause: set when the DAG is unpaused.
  failures_since      timestamptz,
  -- Its file is deleted, or no longer declares it.
  is_stale            boolean NOT NULL DEFAULT false,
  version_id          bigint, -- the current version; NULL until the first one
  -- From the current version: continuous DAGs are searched at every heartbeat.
  is_continuous       boolean NOT NULL DEFAULT false,
  last_parsed_at      timestamptz NOT NULL DEFAULT now(),
  -- The next run of the schedule; next_run_after NULL: none. Advanced in the transaction that creates the run.
  next_logical_date   timestamptz,
  next_interval_start timestamptz,
  next_interval_end   timestamptz,
  next_run_after      timestamptz
);
CREATE INDEX dag_due ON dag (next_run_after) WHERE next_run_after IS NOT NULL AND NOT is_paused AND NOT is_stale;
CREATE INDEX dag_continuous ON dag (dag_id) WHERE is_continuous;
CREATE INDEX dag_file ON dag (file);
CREATE INDEX dag_current_version ON dag (version_id);

-- A version is created when the code of a DAG's file changes, and only then. The generated columns are read by claims:
-- the manifest may have megabytes and would be decompressed at each read.
CREATE TABLE dag_version (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_id          text NOT NULL REFERENCES dag ON DELETE CASCADE,
  number          integer NOT NULL, -- per DAG, from 1
  bundle_hash     text NOT NULL REFERENCES bundle,
  manifest        jsonb NOT NULL,
  source          text NOT NULL, -- the text of the DAG file
  created_at      timestamptz NOT NULL DEFAULT now(),
  task_count      integer NOT NULL GENERATED ALWAYS AS (coalesce(jsonb_array_length(manifest->'tasks'), 0)) STORED,
  max_active_runs integer NOT NULL GENERATED ALWAYS AS (coalesce((manifest->>'maxActiveRuns')::integer, 16)) STORED,
  -- Tasks that need a slot as soon as the run has started.
  first_tasks     integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(
    jsonb_path_query_array(manifest, '$.tasks[*] ? (@.upstream.size() == 0 && !(@.startTrigger.type() == "object"))'))) STORED,
  has_deadlines   boolean NOT NULL
    GENERATED ALWAYS AS (manifest ? 'deadlines' OR manifest @? '$.tasks[*].deadlines') STORED,
  -- The ids of its tasks, a JSON list: the search of the web UI reads no manifests.
  task_ids        text NOT NULL
    GENERATED ALWAYS AS (jsonb_path_query_array(manifest, '$.tasks[*].taskId')::text) STORED,
  -- Owner, tags, schedule and the like, for lists of thousands of DAGs.
  header          jsonb NOT NULL GENERATED ALWAYS AS
    (manifest - '{tasks,groups,maps,docs,paramsSchema,packages,callbacks,notices,deadlines,stop}'::text[]) STORED,
  UNIQUE (dag_id, number)
);
CREATE INDEX dag_version_bundle ON dag_version (bundle_hash);
ALTER TABLE dag ADD CONSTRAINT dag_version_fk FOREIGN KEY (version_id) REFERENCES dag_version;

CREATE TABLE import_error (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  file       text NOT NULL UNIQUE,
  message    text NOT NULL, -- why the file could not be imported
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Schedules and backfills ------------------------------------------------------------------------------------------

-- DAGs whose schedule is a timetable class in their bundle. The class is called in a separate process, outside of any
-- transaction; its result is the plan in the row of `dag`. A transaction that writes both rows locks that of `dag` first.
CREATE TABLE dag_timetable (
  dag_id              text PRIMARY KEY REFERENCES dag ON DELETE CASCADE,
  -- When to call it. During a call: when the calling scheduler counts as dead. NULL: the plan is current.
  ask_at              timestamptz,
  -- Incremented by each call and each new request: the result of an older call is dropped.
  asked               bigint NOT NULL DEFAULT 0,
  -- When the plan was stored: a result that was stored before its due time and is used much later is requested again.
  answered_at         timestamptz,
  -- The last run that it returned.
  last_logical_date   timestamptz,
  last_interval_start timestamptz,
  last_interval_end   timestamptz,
  -- Consecutive failed calls, and the error of the last one.
  failures            integer NOT NULL DEFAULT 0,
  error               json
);
CREATE INDEX dag_timetable_ask ON dag_timetable (ask_at) WHERE ask_at IS NOT NULL;

-- A backfill: the runs of a DAG's schedule for a range of dates. Its job (kind 'backfill') owns it as a scheduler owns a
-- run, creates the runs date by date, and drives them with a limit of its own.
CREATE TABLE backfill (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_id          text NOT NULL REFERENCES dag ON DELETE CASCADE,
  -- The schedule when the backfill was created: a later change of the DAG does not shift the dates.
  schedule        jsonb NOT NULL,
  -- The origin of an interval schedule: the DAG's start.
  anchor          timestamptz,
  -- The version of new runs; NULL (also after its deletion): the DAG's current version.
  version_id      bigint REFERENCES dag_version ON DELETE SET NULL,
  from_date       timestamptz NOT NULL,
  to_date         timestamptz NOT NULL,
  reprocess       text NOT NULL CHECK (reprocess IN ('none', 'failed', 'completed')), -- existing runs to clear
  is_reverse      boolean NOT NULL, -- newest date first
  max_active      integer NOT NULL CHECK (max_active > 0), -- running runs at a time
  -- NULL: not given; cleared runs then keep their own.
  conf            json,
  stop_on_failure boolean NOT NULL,
  state           text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'done', 'failed', 'cancelled')),
  -- Set: it creates no more runs, and gets this state when its running runs have ended.
  ending          text CHECK (ending IN ('failed', 'cancelled')),
  total_runs      integer NOT NULL,
  -- The next date, and the number of dates before it. NULL: none left.
  next_date       timestamptz,
  next_ordinal    integer NOT NULL DEFAULT 0,
  owner_job       bigint REFERENCES job ON DELETE SET NULL,
  created_by      text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  started_at      timestamptz,
  ended_at        timestamptz
);
CREATE INDEX backfill_open ON backfill (id) WHERE state IN ('running', 'paused');
CREATE INDEX backfill_dag ON backfill (dag_id, id);
CREATE INDEX backfill_version ON backfill (version_id) WHERE version_id IS NOT NULL;
CREATE INDEX backfill_owner ON backfill (owner_job) WHERE owner_job IS NOT NULL;

-- Runs and tasks -------------------------------------------------------------------------------------------------

-- owner_job and generation fence the run: every write of an owner carries both and fails when either has changed. A
-- manual edit (clear, mark, cancel) raises the generation, so that the owner reloads before it writes again.
CREATE TABLE dag_run (
  id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_id           text NOT NULL REFERENCES dag ON DELETE CASCADE,
  run_id           text NOT NULL,
  run_type         text NOT NULL CHECK (run_type IN ('scheduled', 'manual', 'backfill', 'operator_triggered', 'asset_triggered', 'signal_triggered')),
  state            text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'success', 'failed')),
  logical_date     timestamptz,
  interval_start   timestamptz,
  interval_end     timestamptz,
  run_after        timestamptz NOT NULL DEFAULT now(), -- not started before
  -- For a partitioned schedule.
  partition_key    text,
  conf             json NOT NULL DEFAULT '{}',
  version_id       bigint NOT NULL REFERENCES dag_version,
  triggered_by     text NOT NULL,
  triggering_user  text,
  note             text, -- of a user
  -- Set when a user ended the run and teardowns still have to run: its state after them, regardless of its tasks. The
  -- reason is in end_reason. NULL: the tasks decide.
  ending           text CHECK (ending IN ('success', 'failed')),
  end_reason       text,
  clear_number     integer NOT NULL DEFAULT 0, -- incremented by each clear
  -- A failed run that is retried stays the same run: its current try, and when the next one starts.
  try_number       integer NOT NULL DEFAULT 1,
  retry_at         timestamptz,
  created_at       timestamptz NOT NULL DEFAULT now(),
  queued_at        timestamptz NOT NULL DEFAULT now(),
  started_at       timestamptz,
  ended_at         timestamptz,
  owner_job        bigint REFERENCES job,
  generation       bigint NOT NULL DEFAULT 0,
  -- When owner_job acquired the run; meaningless without an owner.
  owned_since      timestamptz,
  -- While the backfill is open, only its job starts and drives the run; afterwards the run is like any other.
  backfill_id      bigint REFERENCES backfill,
  -- The task instance that created this run.
  parent_run_id    bigint REFERENCES dag_run ON DELETE SET NULL,
  parent_task_id   text,
  parent_map_index integer,
  -- For a sub-DAG: the try of the parent that it belongs to, and ends with. NULL: an independent run.
  parent_try       integer,
  UNIQUE (dag_id, run_id)
);
CREATE UNIQUE INDEX dag_run_logical_date ON dag_run (dag_id, logical_date) WHERE logical_date IS NOT NULL;
-- Indexes for schedulers: they contain no finished runs.
CREATE INDEX dag_run_queued ON dag_run (run_after, id) WHERE state = 'queued';
CREATE INDEX dag_run_queued_of_dag ON dag_run (dag_id, run_after, id) WHERE state = 'queued';
CREATE INDEX dag_run_backlog ON dag_run (dag_id) WHERE state = 'queued' AND run_type = 'scheduled';
CREATE INDEX dag_run_running ON dag_run (dag_id, owner_job) WHERE state = 'running';
CREATE INDEX dag_run_owner ON dag_run (owner_job) WHERE owner_job IS NOT NULL;
CREATE INDEX dag_run_of_backfill ON dag_run (backfill_id, state) WHERE backfill_id IS NOT NULL;
CREATE INDEX dag_run_sub_dag ON dag_run (id) WHERE parent_try IS NOT NULL AND state IN ('queued', 'running');
-- The latest runs of a DAG without reading its history: lists of DAGs, `@latest`, pages of a DAG's runs.
CREATE INDEX dag_run_latest ON dag_run (dag_id, run_after, id);
-- The latest failed runs of a DAG, however many others succeeded since.
CREATE INDEX dag_run_failed ON dag_run (dag_id, run_after, id) WHERE state = 'failed';
-- The last successful runs of a DAG, for their average duration.
CREATE INDEX dag_run_succeeded ON dag_run (dag_id, ended_at) WHERE state = 'success';
CREATE INDEX dag_run_parent ON dag_run (parent_run_id) WHERE parent_run_id IS NOT NULL;
-- For retention.
CREATE INDEX dag_run_ended ON dag_run (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX dag_run_version ON dag_run (version_id);

-- The outcome of each date of a backfill. created, cleared: the run belongs to the backfill. kept: a run existed and was
-- not changed. awaited: a run of another job was in progress; the backfill waits for it and counts it.
CREATE TABLE backfill_date (
  backfill_id  bigint NOT NULL REFERENCES backfill ON DELETE CASCADE,
  ordinal      integer NOT NULL, -- in the order of processing
  logical_date timestamptz NOT NULL,
  action       text NOT NULL CHECK (action IN ('created', 'cleared', 'kept', 'awaited')),
  dag_run_id   bigint REFERENCES dag_run ON DELETE SET NULL,
  PRIMARY KEY (backfill_id, ordinal)
);
CREATE INDEX backfill_date_run ON backfill_date (dag_run_id) WHERE dag_run_id IS NOT NULL;
CREATE INDEX backfill_date_awaited ON backfill_date (backfill_id) WHERE action = 'awaited';

-- The table with the most writes. Its only index never changes after the insert, so every state change is a HOT update:
-- do not index a column that changes.
CREATE TABLE task_instance (
  dag_run_id         bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id            text NOT NULL,
  map_index          integer NOT NULL DEFAULT -1, -- -1: not mapped
  state              text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'scheduled', 'queued', 'running', 'restarting',
                       'up_for_retry', 'up_for_reschedule', 'deferred', 'success', 'failed', 'skipped', 'upstream_failed', 'removed')),
  -- A user set its state: it stays, regardless of its upstream, until it is cleared or starts again. An end state set by
  -- neither a user nor an attempt follows from the rest of the run, and is evaluated again after an edit.
  is_marked          boolean NOT NULL DEFAULT false,
  try_number         integer NOT NULL DEFAULT 0,
  max_tries          integer NOT NULL DEFAULT 0,
  infra_losses       integer NOT NULL DEFAULT 0, -- attempts of this try lost without a fault of the task
  -- Only reports of this attempt count: new at every dispatch and every resume.
  attempt            uuid,
  -- The attempt that deferred, whose wait this try resumes from. NULL: the try starts at the beginning.
  resumed_attempt    uuid,
  scheduled_at       timestamptz,
  queued_at          timestamptz,
  -- Start of the try; an attempt that resumes after a wait has its own start.
  started_at         timestamptz,
  attempt_started_at timestamptz,
  ended_at           timestamptz,
  retry_at           timestamptz, -- next try or next check
  pool               text NOT NULL,
  pool_slots         integer NOT NULL,
  -- Internal counters (rows of `pool`) of which the instance takes one slot each, e.g. maxActivePerDag; one name per line.
  limit_key          text,
  -- Deferred, but still counted by its pool: decided when it defers, so that a change of the pool cannot miscount it.
  keeps_slot         boolean NOT NULL DEFAULT false,
  queue              text NOT NULL,
  priority_weight    integer NOT NULL,
  executor           text,
  operator           text NOT NULL,
  executor_job       bigint, -- the job that runs the attempt
  hostname           text,
  pid                integer,
  reason             text, -- why it is in this state
  note               text,
  PRIMARY KEY (dag_run_id, task_id, map_index)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- Ended tries that were followed by another: retried, lost or cleared. The current try is in task_instance.
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
  retry_at     timestamptz, -- when the next try or check was due; NULL: it was not followed by an automatic one
  executor_job bigint, -- the job that ran it
  hostname     text,
  pid          integer,
  reason       text
);
CREATE INDEX task_attempt_instance ON task_attempt (dag_run_id, task_id, map_index, try_number);

-- Versions of attempts that began before an edit moved their run to another version. Without a row: the version of the run.
CREATE TABLE attempt_version (
  attempt    uuid PRIMARY KEY,
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  -- Cascades for the deletion of a DAG: retention keeps the version.
  version_id bigint NOT NULL REFERENCES dag_version ON DELETE CASCADE
);
CREATE INDEX attempt_version_run ON attempt_version (dag_run_id);
CREATE INDEX attempt_version_version ON attempt_version (version_id);

-- Groups with retries or callbacks whose state is stored: without a row, a group is at its first try. A mapped group has
-- a row per item; -1: one row for the group. Written by the run's owner, in the batch that changes the group.
CREATE TABLE run_group (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  group_id   text NOT NULL,
  map_index  integer NOT NULL DEFAULT -1,
  -- waiting: it failed, and the next try starts at retry_at. success, failed, skipped: it has ended permanently.
  state      text NOT NULL CHECK (state IN ('open', 'waiting', 'success', 'failed', 'skipped')),
  try_number integer NOT NULL,
  max_tries  integer NOT NULL,
  retry_at   timestamptz,
  PRIMARY KEY (dag_run_id, group_id, map_index)
);

-- The length of a list that a map of a run iterates over, within one item of the enclosing map (-1: none). Its items have
-- the map indexes from `base` on. A long list is expanded in parts: its tasks may temporarily have fewer rows.
CREATE TABLE map_expansion (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  map_id     text NOT NULL,
  parent     integer NOT NULL, -- map index of the enclosing item
  base       integer NOT NULL,
  length     integer NOT NULL CHECK (length > 0),
  -- The highest try of the instances before the list was expanded again: new tries continue from it.
  tries      integer NOT NULL DEFAULT 0,
  PRIMARY KEY (dag_run_id, map_id, parent)
);

-- The displayed name of an instance of a labelled map: the labels of all enclosing maps, or the index of a map without
-- labels. Written and deleted with the instance; a map without labels has no rows here.
CREATE TABLE map_label (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id    text NOT NULL,
  map_index  integer NOT NULL,
  label      text NOT NULL,
  PRIMARY KEY (dag_run_id, task_id, map_index)
);

-- Executing on other machines --------------------------------------------------------------------------------------

-- Work for an executor whose processes outlive their scheduler: an attempt, a callback, or a reaction to a signal. The row
-- exists from the submission until the run's owner has stored the end, so a new owner finds what is running. A worker
-- claims it over the API; only the worker that has claimed it may report about it.
CREATE TABLE assignment (
  id         uuid PRIMARY KEY, -- of the attempt, the callback or the reaction
  kind       text NOT NULL CHECK (kind IN ('attempt', 'callback', 'reaction')),
  dag_run_id bigint REFERENCES dag_run ON DELETE CASCADE, -- NULL: the `onCancel` of a wait, whose run may be deleted
  task_id    text,
  map_index  integer,
  executor   text NOT NULL,
  queue      text NOT NULL,
  priority   integer NOT NULL, -- larger numbers first
  config     json, -- the `executorConfig` of the task, for the executor
  content    json NOT NULL, -- all that the worker needs
  log_key    text GENERATED ALWAYS AS (content->>'logKey') STORED,
  created_at timestamptz NOT NULL DEFAULT now(),
  worker_job bigint REFERENCES job, -- NULL: no worker has claimed it yet
  claimed_at timestamptz,
  -- Set when it has to end: the reason and the terms of the stop.
  cancel     json
);
CREATE INDEX assignment_run ON assignment (dag_run_id);
CREATE INDEX assignment_worker ON assignment (worker_job) WHERE worker_job IS NOT NULL;
CREATE INDEX assignment_waiting ON assignment (executor, queue, created_at) WHERE worker_job IS NULL;

-- What a worker reports of an assignment. The run's owner applies it in its batch and deletes it there; the end deletes the
-- assignment.
CREATE TABLE report (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  assignment_id uuid NOT NULL REFERENCES assignment ON DELETE CASCADE,
  type          text NOT NULL CHECK (type IN ('started', 'ended')),
  content       json NOT NULL,
  at            timestamptz NOT NULL, -- when it happened
  UNIQUE (assignment_id, type) -- a repeated report is stored once
);

-- For users: the depth of the queues of executors, e.g. to start and stop workers. A queue without assignments has no row.
CREATE VIEW queue_depth AS
  SELECT executor, queue,
    (count(*) FILTER (WHERE worker_job IS NULL))::integer AS waiting,
    (count(*) FILTER (WHERE worker_job IS NOT NULL))::integer AS running,
    coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE worker_job IS NULL)), 0)::float8 AS oldest_wait_seconds
  FROM assignment GROUP BY executor, queue;

-- Pools ----------------------------------------------------------------------------------------------------------

-- Slots, and how many are occupied: changed only in the transaction that changes the task's state. slots < 0: no limit.
-- Names that begin with '@' are internal counters ("@dag/task": maximum active instances of a task) and are not listed.
CREATE TABLE pool (
  name             text PRIMARY KEY,
  slots            integer NOT NULL,
  occupied         integer NOT NULL DEFAULT 0 CHECK (occupied >= 0),
  include_deferred boolean NOT NULL DEFAULT false, -- deferred tasks keep their slots
  description      text
) WITH (fillfactor = 20);
INSERT INTO pool (name, slots, description) VALUES ('default_pool', 128, 'Every task that names no other pool');

-- Per number of slots, the best task that a scheduler cannot queue for lack of slots: a freed slot goes to the best task
-- of all schedulers. A task that needs more slots than are free does not block smaller ones.
CREATE TABLE pool_waiter (
  pool            text NOT NULL REFERENCES pool ON DELETE CASCADE,
  job_id          bigint NOT NULL REFERENCES job ON DELETE CASCADE,
  priority_weight integer NOT NULL,
  logical_date    timestamptz,
  map_index       integer NOT NULL,
  slots           integer NOT NULL,
  -- The number of waiting tasks that it represents: of several slots freed at once, each is for one of them.
  amount          integer NOT NULL DEFAULT 1,
  PRIMARY KEY (pool, job_id, slots)
);

-- Waits ----------------------------------------------------------------------------------------------------------

-- Triggers that tasks wait for. Equal waits share one trigger.
CREATE TABLE trigger (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Hash of everything that makes two waits equal (kind, arguments, bundle, queue): they share one row and one poll.
  fingerprint bytea NOT NULL UNIQUE,
  kind        text NOT NULL,
  args        json NOT NULL,
  -- NULL: built in.
  bundle_hash text REFERENCES bundle,
  queue       text NOT NULL,
  replicas    smallint NOT NULL CHECK (replicas IN (1, 2)), -- triggerers that run it
  -- Set: the schedule of that DAG, one run per event.
  dag_id      text REFERENCES dag ON DELETE CASCADE,
  -- No triggerer has to run it before this time.
  wake_at     timestamptz NOT NULL,
  -- Set: it fires at wake_at with this payload, without a triggerer.
  timed       json,
  owner_job   bigint REFERENCES job,
  -- The second triggerer of a trigger with two replicas.
  standby_job bigint REFERENCES job,
  claimed_at  timestamptz, -- by owner_job
  polled_at   timestamptz, -- last complete check
  created_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80);
CREATE INDEX trigger_timed ON trigger (wake_at) WHERE timed IS NOT NULL;
CREATE INDEX trigger_free ON trigger (queue, wake_at) WHERE timed IS NULL AND owner_job IS NULL;
CREATE INDEX trigger_owner ON trigger (owner_job) WHERE owner_job IS NOT NULL;
CREATE INDEX trigger_standby ON trigger (standby_job) WHERE standby_job IS NOT NULL;
CREATE INDEX trigger_single ON trigger (queue, wake_at) WHERE replicas = 2 AND standby_job IS NULL;
CREATE INDEX trigger_bundle ON trigger (bundle_hash);
CREATE UNIQUE INDEX trigger_dag ON trigger (dag_id) WHERE dag_id IS NOT NULL;

-- For users: triggers that have to run now, by queue, e.g. to start and stop triggerers. Timers need no triggerer; a trigger
-- with two replicas counts twice. A queue without triggers has no row.
CREATE VIEW trigger_depth AS
  SELECT queue, sum(replicas)::integer AS triggers FROM trigger
  WHERE timed IS NULL AND wake_at <= now() GROUP BY queue;

-- For a DAG's schedule that observes an external state: the last event that created a run, until the state ends. The next
-- triggerer of the trigger starts from it and creates no second run. Written in the transaction that creates the run.
CREATE TABLE trigger_memory (
  trigger_id bigint PRIMARY KEY REFERENCES trigger ON DELETE CASCADE,
  event      json NOT NULL
);

-- One wait of one attempt. The run's owner inserts and ends it; the triggerer that fires the trigger sets fired_at and
-- outcome, once. The foreign key of waits_on guarantees that the trigger exists.
CREATE TABLE deferral (
  attempt     uuid PRIMARY KEY,
  dag_run_id  bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id     text NOT NULL,
  map_index   integer NOT NULL,
  try_number  integer NOT NULL,
  -- For the record; waits_on becomes NULL when the wait ends.
  trigger_id  bigint NOT NULL,
  waits_on    bigint REFERENCES trigger,
  kind        text NOT NULL,
  name        text, -- of the wait of a function task
  method      text, -- of an operator, to resume at; NULL: function task
  kwargs      json NOT NULL, -- arguments of the method
  on_timeout  text NOT NULL CHECK (on_timeout IN ('fail', 'fatal', 'skip', 'resume')),
  on_failure  text NOT NULL CHECK (on_failure IN ('fail', 'resume')),
  timeout_at  timestamptz,
  -- When the attempt became ready: a wait that no worker began has no row in task_attempt.
  scheduled_at timestamptz,
  deferred_at timestamptz NOT NULL DEFAULT now(),
  fired_at    timestamptz,
  -- {"kind":"event","payload":…}, {"kind":"failed","error":…}, {"kind":"ending","ending":…} or {"kind":"timeout"}
  outcome     json,
  -- The name of the person who answered an approval.
  answered_by text,
  -- When the owner applied the outcome, and the result.
  ended_at    timestamptz,
  end_kind    text CHECK (end_kind IN ('resumed', 'finished', 'timeout', 'cancelled')),
  -- Data of the wait's `onCancel` besides the wait itself: the bundle, the trigger's call, and the inputs of a mapped
  -- operator. NULL: no `onCancel`. Stored here because the trigger's row is deleted with its last wait.
  on_cancel   json
) WITH (fillfactor = 80);
CREATE INDEX deferral_waiting ON deferral (waits_on) WHERE waits_on IS NOT NULL;
-- For the list of waits, the longest first.
CREATE INDEX deferral_since ON deferral (deferred_at) WHERE waits_on IS NOT NULL;
-- For the list of approvals; each has a trigger of its own.
CREATE UNIQUE INDEX deferral_approval ON deferral (trigger_id) WHERE kind = 'tradewind.approval';
CREATE INDEX deferral_fired ON deferral (dag_run_id) WHERE fired_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX deferral_instance ON deferral (dag_run_id, task_id, map_index);

-- Steps that a function task has completed (`ctx.step`), by name, in each try.
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

-- Signals --------------------------------------------------------------------------------------------------------

-- The signal log is read by its position (tx, id), and a signal's version is its id. Two guarantees hold for every reader:
--
-- 1. Nothing appears behind a position. Readers stop before pg_snapshot_xmin, the oldest open transaction. So tx must be at
--    least the writer's own transaction id, and it is.
-- 2. The signals of one key are read in the order of their versions. Writers of a key are serialized (tw_lock_signals, or
--    because the key has only one writer), so the transaction of the previous writer has completed when an INSERT begins.
--    But a transaction may have got its id long before, from another write; with that id alone, its signals would precede
--    those of a transaction that ended earlier. So tx must also be at least the latest transaction completed by then: the
--    one before pg_snapshot_xmax.
--
-- The greater of the two satisfies both; between equal values the id decides.
CREATE TABLE signal (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tx         xid8 NOT NULL DEFAULT greatest(pg_current_xact_id(),
               (pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)::text::xid8),
  namespace  text NOT NULL,
  key        text NOT NULL,
  value      json,
  sender     text NOT NULL,
  -- The sending client, and the signal's number from this client: a signal that is sent again is not stored again.
  client     text,
  client_seq bigint,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT signal_client_seq CHECK ((client IS NULL) = (client_seq IS NULL))
);
CREATE INDEX signal_created ON signal USING brin (created_at);
CREATE INDEX signal_position ON signal (tx, id);
-- Signals of the engine about tasks and runs are read by position only.
CREATE INDEX signal_key ON signal (namespace, key, id) WHERE namespace NOT IN ('task', 'run');
CREATE UNIQUE INDEX signal_sent ON signal (client, client_seq) WHERE client IS NOT NULL;
-- Webhook calls, which triggers wait for by name.
CREATE INDEX signal_webhook ON signal (key, created_at) WHERE namespace = 'webhook';

-- Called in a statement before the INSERT: until the transaction ends no other transaction writes signals of these keys.
-- Keys share 1,024 locks. A transaction that needs many of them takes the one that covers all: the server has a few
-- thousand locks. Call it once per transaction, with all keys: the order of the locks prevents deadlocks.
CREATE FUNCTION tw_lock_signals(namespaces text[], keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  buckets integer[];
  bucket integer;
BEGIN
  SELECT array_agg(DISTINCT b ORDER BY b) INTO buckets
  FROM (SELECT (hashtextextended(n || '/' || k, 0) & 1023)::integer AS b FROM unnest(namespaces, keys) AS s(n, k)) AS each;
  IF cardinality(buckets) > 16 THEN
    PERFORM pg_advisory_xact_lock(730100, 1024);
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock_shared(730100, 1024);
  FOREACH bucket IN ARRAY buckets LOOP
    PERFORM pg_advisory_xact_lock(730100, bucket);
  END LOOP;
END $$;

-- A listener has processed everything up to (tx, signal_id), except for signal_retry and signal_dead_letter. `holder` is
-- a token created at each claim: every write of the listener's process carries it.
CREATE TABLE signal_listener (
  name          text PRIMARY KEY,
  tx            xid8 NOT NULL,
  signal_id     bigint NOT NULL,
  filter        json NOT NULL DEFAULT '{}',
  -- Signals up to this version, or before this time, are excluded: set when the listener was created.
  after_version bigint,
  since         timestamptz,
  holder        text,
  host          text,
  lease_until   timestamptz,
  -- When a process last held it.
  seen_at       timestamptz NOT NULL DEFAULT now(),
  processed     bigint NOT NULL DEFAULT 0, -- number of signals
  -- Set: the schedule of this DAG reads the log under this name. Its lease never expires: no other process can hold or
  -- delete the listener.
  dag_id        text UNIQUE REFERENCES dag ON DELETE CASCADE,
  -- {"when": condition, "route": path or null, "start": …, "end": …}
  schedule      json,
  -- New with every change of the schedule: results computed from an earlier one are not stored.
  revision      uuid,
  -- The signals that the condition has counted since it was last met; changed with the position. NULL: none.
  state         json,
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now()
);

-- Keys whose signal a listener failed to process: signals from signal_id on wait until retry_at, other keys continue.
CREATE TABLE signal_retry (
  listener  text NOT NULL REFERENCES signal_listener ON DELETE CASCADE,
  namespace text NOT NULL,
  key       text NOT NULL,
  signal_id bigint NOT NULL,
  attempts  integer NOT NULL,
  error     text,
  retry_at  timestamptz NOT NULL,
  PRIMARY KEY (listener, namespace, key)
);

-- Signals that a listener has given up, with their content: they outlive the log.
CREATE TABLE signal_dead_letter (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  listener   text NOT NULL,
  signal_id  bigint NOT NULL,
  tx         xid8 NOT NULL,
  namespace  text NOT NULL,
  key        text NOT NULL,
  value      json,
  sender     text NOT NULL,
  sent_at    timestamptz NOT NULL, -- created_at of the signal
  error      text NOT NULL,
  attempts   integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Set: a user requested one more try.
  retry_at   timestamptz,
  UNIQUE (listener, signal_id)
);
CREATE INDEX signal_dead_letter_signal ON signal_dead_letter (signal_id);
CREATE INDEX signal_dead_letter_retry ON signal_dead_letter (listener) WHERE retry_at IS NOT NULL;

-- What signals have caused: runs created, tries of tasks started or restarted, tasks stopped, runs closed, waits ended.
-- Written in the transaction of the effect. No foreign key to the signal, which retention deletes before its runs. The runs
-- that an asset event created are in asset_event_run.
CREATE TABLE signal_effect (
  signal_id  bigint NOT NULL,
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  -- '': the run itself.
  task_id    text NOT NULL DEFAULT '',
  map_index  integer NOT NULL DEFAULT -1,
  try_number integer NOT NULL DEFAULT 0,
  kind       text NOT NULL CHECK (kind IN ('create', 'close', 'start', 'restart', 'stop', 'resume')),
  attempt    uuid, -- of a wait: the attempt that waited
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (signal_id, dag_run_id, task_id, map_index, try_number, kind)
);
-- The signals that caused a run or a try.
CREATE INDEX signal_effect_run ON signal_effect (dag_run_id, task_id, map_index, try_number);

-- A bridge to another signal service: one process at a time copies the service's signals into the log, and signals of
-- tasks from the log into the service. Both positions are stored in the transaction of the copied signals.
CREATE TABLE signal_bridge (
  -- As given by TRADEWIND_SIGNALS.
  service     text PRIMARY KEY,
  -- Everything of the service up to here is in the log: { "position", "afterVersion", "since" }.
  place       json NOT NULL,
  -- Signals of tasks up to here are in the service.
  tx          xid8 NOT NULL,
  signal_id   bigint NOT NULL,
  -- The bridge sends under this client name, with a signal's version as its number: a repeated send is not stored again.
  client      text NOT NULL DEFAULT 'tradewind-' || gen_random_uuid(),
  -- Every write of the process that holds the bridge carries it.
  holder      text,
  lease_until timestamptz
);

-- Signals sent to the service that have not come back yet: they are in the log already. Versions are the service's.
CREATE TABLE signal_published (
  service   text NOT NULL REFERENCES signal_bridge ON DELETE CASCADE,
  namespace text NOT NULL,
  key       text NOT NULL,
  version   bigint NOT NULL,
  PRIMARY KEY (service, namespace, key, version)
);

-- Assets ---------------------------------------------------------------------------------------------------------

-- An asset event is a signal in the namespace 'asset' whose key is the asset's URI, for schedules, rules and waits; and a
-- row of asset_event, which outlives the log, for the API and for later runs.
CREATE TABLE asset (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uri         text NOT NULL UNIQUE,
  group_name  text NOT NULL DEFAULT 'asset',
  description text,
  created_at  timestamptz NOT NULL DEFAULT now(),
  updated_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE asset_alias (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name       text NOT NULL UNIQUE,
  group_name text NOT NULL DEFAULT 'asset'
);

-- The DAGs and tasks that name an asset or an alias, from their current versions.
CREATE TABLE asset_use (
  dag_id     text NOT NULL REFERENCES dag ON DELETE CASCADE,
  -- '': the DAG's schedule.
  task_id    text NOT NULL,
  kind       text NOT NULL CHECK (kind IN ('schedule', 'produces', 'consumes')),
  asset_id   bigint REFERENCES asset ON DELETE CASCADE,
  alias_id   bigint REFERENCES asset_alias ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(asset_id, alias_id) = 1)
);
CREATE INDEX asset_use_dag ON asset_use (dag_id);
CREATE INDEX asset_use_asset ON asset_use (asset_id) WHERE asset_id IS NOT NULL;
CREATE INDEX asset_use_alias ON asset_use (alias_id) WHERE alias_id IS NOT NULL;

CREATE TABLE asset_event (
  -- The id of its signal.
  id               bigint PRIMARY KEY,
  asset_id         bigint NOT NULL REFERENCES asset ON DELETE CASCADE,
  payload          json,
  partition_key    text,
  alias            text,
  -- The task that produced it; NULL: an external event. Not a foreign key: the event outlives the run.
  source_dag_id    text,
  source_run_id    text,
  source_task_id   text,
  source_map_index integer,
  sender           text NOT NULL,
  created_at       timestamptz NOT NULL
);
CREATE INDEX asset_event_asset ON asset_event (asset_id, id);
CREATE INDEX asset_event_source ON asset_event (source_dag_id, source_run_id) WHERE source_dag_id IS NOT NULL;
CREATE INDEX asset_event_alias ON asset_event (alias, asset_id) WHERE alias IS NOT NULL;

-- The runs that an event created. Written in the transaction that creates the run and moves the schedule's position.
CREATE TABLE asset_event_run (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  event_id   bigint NOT NULL REFERENCES asset_event ON DELETE CASCADE,
  PRIMARY KEY (dag_run_id, event_id)
);
CREATE INDEX asset_event_run_event ON asset_event_run (event_id);

-- Stores the event together with every signal of an asset. A new asset is created by the only writer that holds the lock
-- of its key (tw_lock_signals).
CREATE FUNCTION tw_store_asset_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  found bigint;
BEGIN
  SELECT a.id INTO found FROM asset a WHERE a.uri = NEW.key;
  IF found IS NULL THEN
    INSERT INTO asset (uri) VALUES (NEW.key) ON CONFLICT (uri) DO NOTHING;
    SELECT a.id INTO found FROM asset a WHERE a.uri = NEW.key;
  END IF;
  INSERT INTO asset_event (id, asset_id, payload, partition_key, alias, source_dag_id, source_run_id, source_task_id,
                           source_map_index, sender, created_at)
  VALUES (NEW.id, found, NEW.value->'payload', NEW.value->>'partition', NEW.value->>'alias',
          NEW.value->'source'->>'dagId', NEW.value->'source'->>'runId', NEW.value->'source'->>'taskId',
          (NEW.value->'source'->>'mapIndex')::integer, NEW.sender, NEW.created_at);
  RETURN NULL;
END $$;
CREATE TRIGGER signal_asset_event AFTER INSERT ON signal FOR EACH ROW WHEN (NEW.namespace = 'asset')
  EXECUTE FUNCTION tw_store_asset_event();

-- Run drives -----------------------------------------------------------------------------------------------------

-- The drive of a signal-driven run, or of a run with manual commands: the position up to which its owner has applied the
-- signal log to its rules, and the result. The row is created when the run is first loaded, or by a manual command; it is
-- written in the owner's batches, with the effect of the signals, and deleted when the run ends.
CREATE TABLE run_drive (
  dag_run_id bigint PRIMARY KEY REFERENCES dag_run ON DELETE CASCADE,
  -- The position of the slowest reader.
  tx         xid8 NOT NULL,
  signal_id  bigint NOT NULL,
  -- The rules of the run and each task with an onSignal read the log separately: a handler that hangs delays no other.
  -- Readers that are ahead of (tx, signal_id): { "rules": { "tx", "id" }, "tasks": { "<task>": { "tx", "id" } } }.
  ahead      json,
  -- Signals sent before this time do not apply to the run, even if their position comes later.
  since      timestamptz NOT NULL,
  state      json NOT NULL DEFAULT '{}',
  -- Manual commands that are not executed yet. A transaction that adds one raises the run's generation, so that the
  -- owner, whose writes empty the list, has always read all of it.
  manual_commands json NOT NULL DEFAULT '[]',
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- Pending starts of tasks, caused by signals, ticks or users, oldest first by ordinal. A row is added when the start is
-- counted and deleted when it is executed or dropped, in the batch of the run's owner; so each start of a large backlog
-- is written only once. Deleted with the run's drive.
CREATE TABLE run_start (
  dag_run_id bigint NOT NULL REFERENCES run_drive ON DELETE CASCADE,
  task_id    text NOT NULL,
  ordinal    bigint NOT NULL,
  -- Versions of the signals that caused it: { "start": […] } or { "restart": […] }. NULL: none.
  cause      json,
  PRIMARY KEY (dag_run_id, task_id, ordinal)
);

-- Notices --------------------------------------------------------------------------------------------------------

-- Deadlines: by when a run, or a task in it, has to have succeeded. Many statements of many processes create, start and
-- end runs. So a database trigger records each such change of a run with deadlines in the same transaction: no writer can
-- omit it. The result is decided afterwards, from the run's facts (model/notify/deadline.ts).

-- Runs to check. Rows are only inserted and deleted: two notes of one run are two rows, so that a note that is being
-- processed does not hide the next. No foreign key: the note of a deleted run is ignored.
CREATE TABLE deadline_note (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id bigint NOT NULL
);

CREATE FUNCTION tw_note_deadlines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deadline_note (dag_run_id)
  SELECT NEW.id FROM dag_version v WHERE v.id = NEW.version_id AND v.has_deadlines;
  RETURN NULL;
END $$;
CREATE TRIGGER deadline_run_made AFTER INSERT ON dag_run
  FOR EACH ROW EXECUTE FUNCTION tw_note_deadlines();
CREATE TRIGGER deadline_run_moved AFTER UPDATE OF state ON dag_run
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION tw_note_deadlines();

-- One row per deadline of a run, created as soon as its due time is known. A missed deadline stays missed, unless the run
-- is cleared and its time counts again.
CREATE TABLE deadline (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id   bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  -- '': the run itself.
  task_id      text NOT NULL,
  -- Its index among the deadlines of the DAG or the task, in the version that the run had.
  ordinal      integer NOT NULL,
  -- Copied from the manifest: a clear may move the run to another version.
  counts_from  text NOT NULL CHECK (counts_from IN ('queued', 'logicalDate', 'start', 'average')),
  actions      json NOT NULL,
  due_at       timestamptz NOT NULL,
  -- The run's clear_number when due_at was computed.
  clear_number integer NOT NULL,
  state        text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'met', 'missed')),
  decided_at   timestamptz,
  UNIQUE (dag_run_id, task_id, ordinal)
);
CREATE INDEX deadline_due ON deadline (due_at) WHERE state = 'pending';
CREATE INDEX deadline_missed ON deadline (due_at, id) WHERE state = 'missed';

-- Messages to deliver: reports of missed deadlines, and notices of tasks, groups and runs that have ended or are retried.
-- Each row is written in the transaction of its event. Due at next_try_at: the process that takes a row first moves
-- next_try_at forward, so that the row is due again if the process dies.
CREATE TABLE delivery (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id  bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  event       text NOT NULL CHECK (event IN ('success', 'failure', 'retry', 'deadline')),
  -- NULL for a run or a group.
  task_id     text,
  group_id    text,
  map_index   integer NOT NULL DEFAULT -1,
  deadline_id bigint REFERENCES deadline ON DELETE CASCADE,
  -- The index of the action among those of its event.
  place       integer NOT NULL,
  action      json NOT NULL,
  -- The report at the time of the event: the run may be cleared before the delivery.
  report      json NOT NULL,
  -- For a failed group or run: the row of the task instance that failed first, at that time.
  cause       json,
  occurred_at timestamptz NOT NULL DEFAULT now(),
  -- handed: a function, which runs as a callback. dead: given up, kept for inspection.
  state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'handed', 'done', 'dead')),
  attempts    integer NOT NULL DEFAULT 0,
  next_try_at timestamptz NOT NULL DEFAULT now(),
  error       text, -- of the last attempt
  ended_at    timestamptz,
  CONSTRAINT delivery_deadline_check CHECK ((event = 'deadline') = (deadline_id IS NOT NULL))
);
CREATE INDEX delivery_run ON delivery (dag_run_id);
CREATE INDEX delivery_deadline ON delivery (deadline_id);
CREATE INDEX delivery_due ON delivery (next_try_at) WHERE state = 'pending';
CREATE INDEX delivery_dead ON delivery (id) WHERE state = 'dead';

-- Callbacks that an executor must run: rows, so that none is lost when a process dies.
CREATE TABLE callback (
  id          uuid PRIMARY KEY,
  -- NULL: the `onCancel` of a wait. Its run may be deleted before it runs; the row holds all that it needs.
  dag_run_id  bigint REFERENCES dag_run ON DELETE CASCADE,
  task_id     text,
  map_index   integer,
  group_id    text,
  event       text NOT NULL CHECK (event IN ('success', 'failure', 'retry', 'deadline', 'cancel')),
  try_number  integer NOT NULL DEFAULT 0,
  error       json,
  delivery_id bigint REFERENCES delivery ON DELETE CASCADE,
  bundle_hash text REFERENCES bundle,
  -- The wait: how it began and how it ended.
  wait        json,
  -- The facts of its run.
  run         json,
  owner_job   bigint REFERENCES job,
  tries       integer NOT NULL DEFAULT 0, -- jobs that died while running it
  created_at  timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT callback_run_check CHECK ((event = 'cancel') = (dag_run_id IS NULL)),
  CONSTRAINT callback_wait_check
    CHECK (event <> 'cancel' OR (bundle_hash IS NOT NULL AND wait IS NOT NULL AND run IS NOT NULL))
);
CREATE INDEX callback_run ON callback (dag_run_id);
CREATE INDEX callback_owner ON callback (owner_job);
-- Callbacks without an owner, oldest first.
CREATE INDEX callback_unowned ON callback (created_at) WHERE owner_job IS NULL;
CREATE INDEX callback_bundle ON callback (bundle_hash) WHERE bundle_hash IS NOT NULL;
CREATE INDEX callback_delivery ON callback (delivery_id) WHERE delivery_id IS NOT NULL;

-- Outputs --------------------------------------------------------------------------------------------------------

-- Outputs that are too large for the database are objects in an object store. Every object has a row here, created before
-- the object: a row without an output and without an active attempt is deleted with its object (db clean). No foreign key
-- to the run: the row outlives it until the object is deleted.
CREATE TABLE output_object (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id bigint NOT NULL,
  task_id    text NOT NULL,
  map_index  integer NOT NULL,
  -- Only the current attempt of an instance can attach its object to an output. One object per attempt: a repeated call
  -- finds it.
  attempt    uuid NOT NULL UNIQUE,
  -- As in the setting: file:, file:/folder, s3://bucket/prefix.
  store      text NOT NULL,
  key        text NOT NULL,
  bytes      bigint NOT NULL,
  sha256     text NOT NULL,
  -- The length of a list: a map can be expanded without reading the object.
  items      bigint,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Task outputs (Airflow: XCom).
CREATE TABLE xcom (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id    text NOT NULL,
  map_index  integer NOT NULL DEFAULT -1,
  key        text NOT NULL,
  value      json,
  -- Instead of a value. A separate column, so that no value can be mistaken for a reference.
  object_id  bigint REFERENCES output_object,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (dag_run_id, task_id, map_index, key)
);
CREATE INDEX xcom_object ON xcom (object_id) WHERE object_id IS NOT NULL;

-- Settings -------------------------------------------------------------------------------------------------------

-- Values and secrets are sealed (AES-256-GCM) with the installation's key, which also authenticates the row's key.
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
  sealed      bytea, -- password and extra
  updated_at  timestamptz NOT NULL DEFAULT now()
);

-- Access ---------------------------------------------------------------------------------------------------------

CREATE TABLE api_token (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text NOT NULL,
  sha256       bytea NOT NULL UNIQUE, -- the token itself is not stored
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  last_used_at timestamptz,
  -- 'worker': only the routes that execute tasks; 'metrics': only /metrics.
  role         text NOT NULL DEFAULT 'admin' CHECK (role IN ('admin', 'worker', 'metrics'))
);

-- Same key and same request: the stored response is returned. Same key, other request: rejected.
CREATE TABLE idempotency_key (
  key          text NOT NULL,
  token_id     bigint NOT NULL REFERENCES api_token ON DELETE CASCADE, -- keys are per token
  request_hash bytea NOT NULL,
  status       integer,
  body         json,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (token_id, key)
);

-- A browser that is signed in with a token. Ends with its token.
CREATE TABLE web_session (
  sha256       bytea PRIMARY KEY, -- of the cookie, which is not stored
  token_id     bigint NOT NULL REFERENCES api_token ON DELETE CASCADE,
  created_at   timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL
);
CREATE INDEX web_session_token ON web_session (token_id);

-- The code of a link that signs a browser in. Deleted when it is used.
CREATE TABLE sign_in_code (
  sha256     bytea PRIMARY KEY,
  token_id   bigint NOT NULL REFERENCES api_token ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_code_token ON sign_in_code (token_id);

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

-- Raises an error if a guarded statement changed too few rows, which rolls back the whole transaction. SQLSTATE class TW:
-- TW001 the run's owner or generation has changed, TW002 a pool has no free slots, TW003 a state has changed.
CREATE FUNCTION tw_require(ok boolean, code text, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT ok THEN
    RAISE EXCEPTION '%', what USING ERRCODE = code;
  END IF;
END $$;
