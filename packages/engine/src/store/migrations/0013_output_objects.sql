-- Outputs that are too large for the database lie in an object store. Every object that may exist has a row here, made
-- before the object is: what no output refers to, and no attempt under way, is removed with its object (db clean).
-- No foreign key to the run: the row outlives it until the object is gone.
CREATE TABLE output_object (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id bigint NOT NULL,
  task_id    text NOT NULL,
  map_index  integer NOT NULL,
  -- Only the current attempt of an instance can make its object that of an output.
  attempt    uuid NOT NULL,
  -- As the setting says it: file:, file:/folder, s3://bucket/prefix.
  store      text NOT NULL,
  key        text NOT NULL,
  bytes      bigint NOT NULL,
  sha256     text NOT NULL,
  -- Of a list, how many it has: a map runs over it without reading it.
  items      bigint,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- In place of a value. A column of its own: no value can be mistaken for a reference.
ALTER TABLE xcom ADD COLUMN object_id bigint REFERENCES output_object;
CREATE INDEX xcom_object ON xcom (object_id) WHERE object_id IS NOT NULL;
