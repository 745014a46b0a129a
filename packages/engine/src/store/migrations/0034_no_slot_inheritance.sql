-- Each queued task has the slots of its pool.
ALTER TABLE task_instance DROP COLUMN is_behind;
ALTER TYPE tw_instance_move DROP ATTRIBUTE is_behind;
