-- The signal log is read by its position (tx, id), and a signal's version is its id. Two promises hold for every reader:
--
-- 1. Nothing appears behind a position. Readers stop before pg_snapshot_xmin: the oldest transaction still open. So tx
--    must be at least the writer's own transaction id, and it is.
-- 2. The signals of one key are read in the order of their versions. Writers of a key come one after the other
--    (tw_lock_signals, or because the key has one writer only), so each finds the former one's transaction completed
--    when its INSERT begins. But a transaction may have got its id long before, for something else it wrote; by that
--    alone, its signals would come before those of a transaction that ended earlier. So tx must also be at least the
--    latest transaction that has completed by then: the one before pg_snapshot_xmax.
--
-- The greater of the two keeps both promises; between equals the id decides.
ALTER TABLE signal
  ALTER COLUMN tx SET DEFAULT greatest(pg_current_xact_id(),
    (pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)::text::xid8),
  -- Who sent it, and its number among what that client sent: sent again, it is not stored again.
  ADD COLUMN client text,
  ADD COLUMN client_seq bigint,
  ADD CONSTRAINT signal_client_seq CHECK ((client IS NULL) = (client_seq IS NULL));
CREATE INDEX signal_position ON signal (tx, id);
-- What the engine itself tells of tasks and runs is read by position only.
CREATE INDEX signal_key ON signal (namespace, key, id) WHERE namespace NOT IN ('task', 'run');
CREATE UNIQUE INDEX signal_sent ON signal (client, client_seq) WHERE client IS NOT NULL;

-- Called in a statement before the INSERT: until the transaction ends nobody else writes signals of these keys. Keys
-- share 1,024 locks. Whoever needs many of them takes the one that stands for all: the server has room for a few
-- thousand locks, and such writers would meet in some of them anyway. Call it once in a transaction, with all keys:
-- the order of the locks is what keeps two writers from waiting for each other.
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

-- A listener has dealt with everything up to (tx, signal_id), except for what signal_retry and signal_dead_letter say.
-- It is active where `holder`, a token made at each claim, is known: every write of its holder names it.
ALTER TABLE signal_listener
  ADD COLUMN filter json NOT NULL DEFAULT '{}',
  -- What lies before these was not asked for when the listener was made.
  ADD COLUMN after_version bigint,
  ADD COLUMN since timestamptz,
  ADD COLUMN holder text,
  ADD COLUMN host text,
  ADD COLUMN lease_until timestamptz,
  -- When it was last held by anybody.
  ADD COLUMN seen_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN processed bigint NOT NULL DEFAULT 0,
  ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();

-- Keys whose signal a listener could not deal with: those from signal_id on wait until retry_at, the other keys go on.
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

-- Signals a listener has given up, with their content: they outlive the log.
CREATE TABLE signal_dead_letter (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  listener   text NOT NULL,
  signal_id  bigint NOT NULL,
  tx         xid8 NOT NULL,
  namespace  text NOT NULL,
  key        text NOT NULL,
  value      json,
  sender     text NOT NULL,
  sent_at    timestamptz NOT NULL,
  error      text NOT NULL,
  attempts   integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Set: somebody asked that its listener try it once more.
  retry_at   timestamptz,
  UNIQUE (listener, signal_id)
);
CREATE INDEX signal_dead_letter_retry ON signal_dead_letter (listener) WHERE retry_at IS NOT NULL;
