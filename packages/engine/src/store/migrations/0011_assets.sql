-- Assets. What happens to one is a signal of the namespace 'asset' whose key is its address: schedules, rules and waits
-- hear it as they hear any. What people and runs ask of it later is a row of its own, which outlives the log.
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

-- Which DAGs and tasks name it, as of their newest versions.
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
  -- That of its signal.
  id               bigint PRIMARY KEY,
  asset_id         bigint NOT NULL REFERENCES asset ON DELETE CASCADE,
  payload          json,
  partition_key    text,
  alias            text,
  -- The task that produced it; NULL: it comes from outside. Not a reference: it outlives the run.
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

-- The runs that were made of it. In the transaction that makes the run and moves its schedule's position.
CREATE TABLE asset_event_run (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  event_id   bigint NOT NULL REFERENCES asset_event ON DELETE CASCADE,
  PRIMARY KEY (dag_run_id, event_id)
);
CREATE INDEX asset_event_run_event ON asset_event_run (event_id);

-- Set on runs of a schedule that is partitioned.
ALTER TABLE dag_run ADD COLUMN partition_key text;

-- Whoever writes such a signal, in whatever transaction: signal and event are there together, or neither is. A new asset
-- is made by the one writer that holds the lock of its key (tw_lock_signals).
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
