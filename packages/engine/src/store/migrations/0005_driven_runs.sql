-- What drives a run besides the order of its tasks: the position up to which its owner has put the signal log to its
-- rules, and what came of it. The row is made when the run is first loaded, or when somebody gives an order by hand;
-- it is written in the owner's batches, with the effect of what was heard, and goes with the end of the run.
CREATE TABLE run_drive (
  dag_run_id bigint PRIMARY KEY REFERENCES dag_run ON DELETE CASCADE,
  tx         xid8 NOT NULL,
  signal_id  bigint NOT NULL,
  -- What was sent before the run was there does not concern it, even if its position comes later.
  since      timestamptz NOT NULL,
  state      json NOT NULL DEFAULT '{}',
  -- Given by hand and not carried out yet. Whoever adds one raises the run's generation, so that the owner, whose writes
  -- empty the list, has always seen all of it.
  orders     json NOT NULL DEFAULT '[]',
  updated_at timestamptz NOT NULL DEFAULT now()
);
