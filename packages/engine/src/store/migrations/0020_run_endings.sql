-- A run that somebody has ended while teardowns are left in it: how it ends when those have, whatever its tasks say. Why is
-- in end_reason already. NULL: it ends as its tasks do.
ALTER TABLE dag_run ADD COLUMN ending text CHECK (ending IN ('success', 'failed'));
