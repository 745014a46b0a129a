-- The best task of each width: one that does not fit lets narrower ones pass, and of those, too, the highest of all
-- schedulers goes first.
ALTER TABLE pool_waiter DROP CONSTRAINT pool_waiter_pkey, ADD PRIMARY KEY (pool, job_id, slots),
  -- It stands for so many that wait: when several slots are freed at once, each is for one of them.
  ADD COLUMN amount integer NOT NULL DEFAULT 1;
