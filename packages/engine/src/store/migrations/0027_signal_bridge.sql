-- A signal service of another make drives scheduling through a bridge: one process at a time copies its signals into
-- the log, and what tasks have sent out of the log into the service. Both places are stored with what they are about.
CREATE TABLE signal_bridge (
  -- As TRADEWIND_SIGNALS names it.
  service     text PRIMARY KEY,
  -- Everything of the service up to here is in the log: { "position", "afterVersion", "since" }.
  place       json NOT NULL,
  -- Everything of the log up to here that tasks have sent is in the service.
  tx          xid8 NOT NULL,
  signal_id   bigint NOT NULL,
  -- Under this name the bridge sends, with a signal's version as its number: sent again, it is not stored again.
  client      text NOT NULL DEFAULT 'tradewind-' || gen_random_uuid(),
  -- Every write of the process that holds the bridge names it.
  holder      text,
  lease_until timestamptz
);

-- What was sent to the service and has not come back yet: it is in the log already. Versions are the service's.
CREATE TABLE signal_published (
  service   text NOT NULL REFERENCES signal_bridge ON DELETE CASCADE,
  namespace text NOT NULL,
  key       text NOT NULL,
  version   bigint NOT NULL,
  PRIMARY KEY (service, namespace, key, version)
);
