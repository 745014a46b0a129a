-- How long a list is that a map of a run runs over, beneath one item of the map around it (-1: there is none). Its items
-- have the map indexes from `base` on. The rows of its tasks may be fewer for a while: a long list is made piece by piece.
CREATE TABLE map_expansion (
  dag_run_id bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  map_id     text NOT NULL,
  parent     integer NOT NULL,
  base       integer NOT NULL,
  length     integer NOT NULL CHECK (length > 0),
  PRIMARY KEY (dag_run_id, map_id, parent)
);
