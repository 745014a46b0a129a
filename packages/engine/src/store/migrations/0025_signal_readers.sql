-- The rules of a run and each of its tasks with an onSignal have a place in the signal log of their own: a handler that
-- hangs holds up no other. (tx, signal_id) is the place of the one farthest behind; here are those that are ahead of it:
-- { "rules": { "tx", "id" }, "tasks": { "<task>": { "tx", "id" } } }.
ALTER TABLE run_drive ADD COLUMN ahead json;
