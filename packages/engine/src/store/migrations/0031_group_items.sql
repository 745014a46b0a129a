-- A mapped group with retries has a row per item: its own try, its own wait, its own end. -1: one row for the group.
ALTER TABLE run_group ADD COLUMN map_index integer NOT NULL DEFAULT -1;
ALTER TABLE run_group DROP CONSTRAINT run_group_pkey, ADD PRIMARY KEY (dag_run_id, group_id, map_index);
