-- One change of an instance, as a batch hands it over. PostgreSQL makes a table of each array that it unfolds: a small
-- batch paid more for twenty arrays, one for each column, than for the rows that it changes.
CREATE TYPE tw_instance_move AS (
  run                bigint,
  task               text,
  map                integer,
  from_state         text,
  from_attempt       uuid,
  to_state           text,
  attempt            uuid,
  try_number         integer,
  infra_losses       integer,
  scheduled_at       float8,
  queued_at          float8,
  started_at         float8,
  ended_at           float8,
  retry_at           float8,
  pid                integer,
  reason             text,
  step               uuid,
  attempt_started_at float8,
  keeps_slot         boolean,
  is_behind          boolean
);
