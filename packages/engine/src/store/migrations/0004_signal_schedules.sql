-- Schedules on signals. How far a DAG's schedule has read the log is a listener's position, so that retention and people
-- see it as one. The holder's lease never ends: nobody else can be active under that name, or delete it.
ALTER TABLE signal_listener
  ADD COLUMN dag_id text UNIQUE REFERENCES dag ON DELETE CASCADE,
  -- {"when": condition, "route": path or null, "start": …, "end": …}
  ADD COLUMN schedule json,
  -- New with every change of the schedule: what was found out with the former one must not be stored.
  ADD COLUMN revision uuid,
  -- What the condition has heard since it fired last; changed with the position, or not at all. NULL: nothing.
  ADD COLUMN state json;
