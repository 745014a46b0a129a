-- The DAGs whose runs a scheduler or a backfill job claims; NULL: all. Peers hand it no runs of other DAGs. A 'driver' is a
-- program that submits runs of its own choice and owns them as a scheduler does.
ALTER TABLE job ADD COLUMN dags text[],
  DROP CONSTRAINT job_kind_check,
  ADD CONSTRAINT job_kind_check
    CHECK (kind IN ('scheduler', 'dag_processor', 'triggerer', 'api', 'backfill', 'driver'));
