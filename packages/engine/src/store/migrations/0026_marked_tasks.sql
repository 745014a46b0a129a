-- Somebody set its state by hand: it stays, whatever its upstream does, until it is cleared or begins again. An end that
-- neither a person nor an attempt has set follows from the rest of the run, and is judged again after an edit.
ALTER TABLE task_instance ADD COLUMN is_marked boolean NOT NULL DEFAULT false;
UPDATE task_instance SET is_marked = true
WHERE state = 'skipped' AND attempt IS NULL AND reason = 'marked skipped by hand';
