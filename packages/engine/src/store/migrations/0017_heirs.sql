-- A queued task may stand behind another of its kind that is under way: it is counted nowhere yet, and takes over the
-- slots of the one that ends. What was stored before stands behind nobody.
ALTER TABLE task_instance ADD COLUMN is_behind boolean NOT NULL DEFAULT false;
