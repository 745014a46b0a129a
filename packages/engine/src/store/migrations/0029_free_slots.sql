-- How many tasks a scheduler can run at once (NULL: no limit, or not a scheduler), and how many more it could start now:
-- what its peers need to know before they leave a queued run to it, or hand one over.
ALTER TABLE job ADD COLUMN slots integer, ADD COLUMN free_slots integer NOT NULL DEFAULT 0;

-- Tasks that need a slot as soon as the run has started.
ALTER TABLE dag_version ADD COLUMN first_tasks integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(
  jsonb_path_query_array(manifest, '$.tasks[*] ? (@.upstream.size() == 0 && !(@.startTrigger.type() == "object"))'))) STORED;
