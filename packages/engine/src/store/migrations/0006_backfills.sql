-- A backfill: the runs of a DAG's schedule for a range of dates. Its job (kind 'backfill') owns it as a scheduler owns
-- a run, makes the run of one date after the other, and drives them with a limit of its own.
CREATE TABLE backfill (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_id            text NOT NULL REFERENCES dag ON DELETE CASCADE,
  -- What its dates are, as it was when the backfill was made: a DAG that changes meanwhile does not shift them.
  schedule          jsonb NOT NULL,
  -- From where an interval counts: the DAG's start.
  anchor            timestamptz,
  -- What new runs are made with; NULL, or no longer there: the DAG's current version.
  version_id        bigint REFERENCES dag_version ON DELETE SET NULL,
  from_date         timestamptz NOT NULL,
  to_date           timestamptz NOT NULL,
  reprocess         text NOT NULL CHECK (reprocess IN ('none', 'failed', 'completed')),
  is_reverse        boolean NOT NULL,
  max_active        integer NOT NULL CHECK (max_active > 0),
  -- NULL: none was given; runs that are cleared then keep their own.
  conf              json,
  stop_on_failure   boolean NOT NULL,
  state             text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'done', 'failed', 'cancelled')),
  -- It makes no more runs, and comes to this state when those under way have ended.
  ending            text CHECK (ending IN ('failed', 'cancelled')),
  total_runs        integer NOT NULL,
  -- The date to handle next, and how many have been. NULL: all of them.
  next_date         timestamptz,
  next_ordinal      integer NOT NULL DEFAULT 0,
  owner_job         bigint REFERENCES job ON DELETE SET NULL,
  created_by        text,
  created_at        timestamptz NOT NULL DEFAULT now(),
  updated_at        timestamptz NOT NULL DEFAULT now(),
  started_at        timestamptz,
  ended_at          timestamptz
);
CREATE INDEX backfill_open ON backfill (id) WHERE state IN ('running', 'paused');
CREATE INDEX backfill_dag ON backfill (dag_id, id);
CREATE INDEX backfill_version ON backfill (version_id) WHERE version_id IS NOT NULL;
CREATE INDEX backfill_owner ON backfill (owner_job) WHERE owner_job IS NOT NULL;

-- What became of each date. created, cleared: the run is the backfill's. kept: there was one, and it was left alone.
-- awaited: one was under way with somebody else; it is waited for, and counts.
CREATE TABLE backfill_date (
  backfill_id  bigint NOT NULL REFERENCES backfill ON DELETE CASCADE,
  ordinal      integer NOT NULL,
  logical_date timestamptz NOT NULL,
  action       text NOT NULL CHECK (action IN ('created', 'cleared', 'kept', 'awaited')),
  dag_run_id   bigint REFERENCES dag_run ON DELETE SET NULL,
  PRIMARY KEY (backfill_id, ordinal)
);
CREATE INDEX backfill_date_run ON backfill_date (dag_run_id) WHERE dag_run_id IS NOT NULL;
CREATE INDEX backfill_date_awaited ON backfill_date (backfill_id) WHERE action = 'awaited';

-- While the backfill is open its job alone starts and drives the run; afterwards the run is as any other.
ALTER TABLE dag_run ADD COLUMN backfill_id bigint REFERENCES backfill;
CREATE INDEX dag_run_of_backfill ON dag_run (backfill_id, state) WHERE backfill_id IS NOT NULL;
