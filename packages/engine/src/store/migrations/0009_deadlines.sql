-- Deadlines: by when a run, or a task in it, has to have succeeded.
--
-- Runs come to be, start and end in many statements of many processes. That something happened to a run that has
-- deadlines is noted by the database itself, in the transaction in which it happens: no writer can forget it. What it
-- means is decided afterwards, from the run's facts (model/deadline.ts), by whoever takes the note.
ALTER TABLE dag_version ADD COLUMN has_deadlines boolean NOT NULL
  GENERATED ALWAYS AS (manifest ? 'deadlines' OR manifest @? '$.tasks[*].deadlines') STORED;

-- Runs to look at. Only ever added to and taken away whole: two notes of one run are two rows, so that one that is
-- being taken does not hide the next. Without a reference: the note of a run that is gone is taken and means nothing.
CREATE TABLE deadline_note (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id bigint NOT NULL
);

CREATE FUNCTION tw_note_deadlines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deadline_note (dag_run_id)
  SELECT NEW.id FROM dag_version v WHERE v.id = NEW.version_id AND v.has_deadlines;
  RETURN NULL;
END $$;
CREATE TRIGGER deadline_run_made AFTER INSERT ON dag_run
  FOR EACH ROW EXECUTE FUNCTION tw_note_deadlines();
CREATE TRIGGER deadline_run_moved AFTER UPDATE OF state ON dag_run
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION tw_note_deadlines();

-- One row per deadline of a run, from the moment it is known when it is due. What is missed stays missed, unless the
-- run is cleared and counts anew.
CREATE TABLE deadline (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dag_run_id   bigint NOT NULL REFERENCES dag_run ON DELETE CASCADE,
  -- '': of the run itself.
  task_id      text NOT NULL,
  -- Its place among the deadlines of the DAG or the task, in the version that the run had.
  ordinal      integer NOT NULL,
  -- The manifest's: kept, for the run may be cleared to another version.
  counts_from  text NOT NULL CHECK (counts_from IN ('queued', 'logicalDate', 'start', 'average')),
  actions      json NOT NULL,
  due_at       timestamptz NOT NULL,
  -- How often the run had been cleared when the moment was found.
  clear_number integer NOT NULL,
  state        text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'met', 'missed')),
  decided_at   timestamptz,
  UNIQUE (dag_run_id, task_id, ordinal)
);
CREATE INDEX deadline_due ON deadline (due_at) WHERE state = 'pending';
CREATE INDEX deadline_missed ON deadline (due_at, id) WHERE state = 'missed';

-- What a missed deadline has to tell, one row per action, written with the miss. Due again at next_try_at: whoever takes
-- it moves that on first, so that it comes back if he dies over it.
CREATE TABLE deadline_delivery (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  deadline_id bigint NOT NULL REFERENCES deadline ON DELETE CASCADE,
  -- The action's place in the deadline.
  place       integer NOT NULL,
  action      json NOT NULL,
  -- When the deadline was due and found missed: those of the deadline may move on when the run is cleared.
  due_at      timestamptz NOT NULL,
  missed_at   timestamptz NOT NULL,
  -- handed: a function, which a worker has (callback). dead: given up, for people to see.
  state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'handed', 'done', 'dead')),
  attempts    integer NOT NULL DEFAULT 0,
  next_try_at timestamptz NOT NULL DEFAULT now(),
  error       text,
  ended_at    timestamptz
);
CREATE INDEX deadline_delivery_of ON deadline_delivery (deadline_id);
CREATE INDEX deadline_delivery_due ON deadline_delivery (next_try_at) WHERE state = 'pending';
CREATE INDEX deadline_delivery_dead ON deadline_delivery (id) WHERE state = 'dead';

-- A function is run as any other callback.
ALTER TABLE callback DROP CONSTRAINT callback_event_check,
  ADD CONSTRAINT callback_event_check CHECK (event IN ('success', 'failure', 'retry', 'deadline')),
  ADD COLUMN delivery_id bigint REFERENCES deadline_delivery ON DELETE CASCADE;
CREATE INDEX callback_delivery ON callback (delivery_id) WHERE delivery_id IS NOT NULL;

-- The last runs of a DAG, for their average.
CREATE INDEX dag_run_succeeded ON dag_run (dag_id, ended_at) WHERE state = 'success';
