-- Starts that signals, ticks or people have asked for and that wait, oldest first by ordinal. A row is added when the
-- start is counted and deleted when it is carried out or forgotten, in the batch of the run's owner; a burst of
-- thousands is not written again for each. They go with the run's drive.
CREATE TABLE run_start (
  dag_run_id bigint NOT NULL REFERENCES run_drive ON DELETE CASCADE,
  task_id    text NOT NULL,
  ordinal    bigint NOT NULL,
  -- Versions of the signals it is due to: { "start": […] } or { "restart": […] }. Null: due to none.
  cause      json,
  PRIMARY KEY (dag_run_id, task_id, ordinal)
);

-- They were a part of run_drive.state: a number, and what each is due to (a version, an object, or null).
INSERT INTO run_start (dag_run_id, task_id, ordinal, cause)
SELECT d.dag_run_id, t.task_id, n,
  CASE jsonb_typeof(t.task->'causes'->n)
    WHEN 'number' THEN jsonb_build_object('start', jsonb_build_array(t.task->'causes'->n))
    WHEN 'object' THEN t.task->'causes'->n
  END
FROM run_drive d
CROSS JOIN LATERAL jsonb_each(coalesce(d.state::jsonb->'tasks', '{}')) AS t(task_id, task)
CROSS JOIN LATERAL generate_series(0, coalesce((t.task->>'starts')::integer, 0) - 1) AS n;

UPDATE run_drive d SET state = jsonb_set(d.state::jsonb, '{tasks}',
  (SELECT jsonb_object_agg(t.task_id, t.task - 'starts' - 'causes') FROM jsonb_each(d.state::jsonb->'tasks') AS t(task_id, task)))
WHERE jsonb_path_exists(d.state::jsonb, '$.tasks.*.starts');
