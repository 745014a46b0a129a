-- Of a DAG's schedule that looks at a state outside: the last event that made a run, until the state is seen to have
-- ceased. Whoever runs the trigger next finds it as it was, and makes no second run. Written in the transaction that
-- stores the run; goes with the trigger.
CREATE TABLE trigger_memory (
  trigger_id bigint PRIMARY KEY REFERENCES trigger ON DELETE CASCADE,
  event      json NOT NULL
);
