-- When a timetable gave the plan: one that was given before its moment and is acted on much later is asked for again.
ALTER TABLE dag_timetable ADD COLUMN answered_at timestamptz;
