-- What an instance of a labelled map is called, as people see it: the labels of all maps around it, or the index where one
-- has none. Written with the instance and dropped with it; a map without labels has no rows here.
CREATE TABLE map_label (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  task_id    text NOT NULL,
  map_index  integer NOT NULL,
  label      text NOT NULL,
  PRIMARY KEY (dag_run_id, task_id, map_index)
);

-- The highest try of the instances that lay there before the list was expanded anew: the tries of these go on from it.
ALTER TABLE map_expansion ADD COLUMN tries integer NOT NULL DEFAULT 0;
