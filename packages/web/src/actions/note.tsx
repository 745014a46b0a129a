/** The note of a run or of a task instance: shown, written, and taken back. */
import { MessageSquare, Pencil } from "lucide-react";
import { useState } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Field, TextArea } from "../ui/field.tsx";
import { apiPath } from "./api-call.ts";
import { change } from "./change.ts";
import { commandOf, type Request } from "./command-text.ts";
import { Twin } from "./twin.tsx";

/** A run, or with a task an instance of that run. */
interface Noted {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId?: string;
  readonly mapIndex?: number;
}

const RUN = "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}";
const INSTANCE = `${RUN}/taskInstances/{task_id}`;
const SHOWN_IN = [
  RUN,
  "/api/v2/dags/{dag_id}/dagRuns",
  "/ui/dags/{dag_id}/grid",
  INSTANCE,
  `${INSTANCE}/{map_index}`,
  `${RUN}/taskInstances`,
  `${INSTANCE}/listMapped`,
];

/** The server accepts notes up to here. */
const LONGEST = 1_000;

export function Note({ of, note }: { readonly of: Noted; readonly note: string | null }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <span className="inline-flex min-w-0 items-start gap-1.5">
      {note === null ? (
        <Button kind="quiet" className="-ml-2.5" onClick={() => setOpen(true)}>
          <MessageSquare aria-hidden /> Add a note
        </Button>
      ) : (
        <>
          <MessageSquare aria-hidden className="mt-0.5 size-3.5 shrink-0 text-accent" />
          <span className="line-clamp-6 min-w-0 break-words whitespace-pre-wrap text-text" title={note}>
            {note}
          </span>
          <IconButton label="Edit the note" className="-my-1" onClick={() => setOpen(true)}>
            <Pencil />
          </IconButton>
        </>
      )}
      {isOpen && <EditNote of={of} note={note} onClose={() => setOpen(false)} />}
    </span>
  );
}

function EditNote({
  of,
  note,
  onClose,
}: {
  readonly of: Noted;
  readonly note: string | null;
  readonly onClose: () => void;
}) {
  const [text, setText] = useState(note ?? "");
  const [busy, setBusy] = useState(false);
  const next = text.trim() || null;
  const request = noteRequest(of, next);
  const save = async () => {
    setBusy(true);
    const isSaved = await change({
      request,
      undo: noteRequest(of, note),
      done: next === null ? "Removed the note" : "Saved the note",
      reload: SHOWN_IN,
    });
    setBusy(false);
    if (isSaved) onClose();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Note of ${of.taskId ?? of.runId}`}
      footer={
        <>
          <Twin cli={noteCommand(of, next)} request={request} />
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={busy || next === note} onClick={() => void save()}>
            {next === null && note !== null ? "Remove the note" : "Save the note"}
          </Button>
        </>
      }
    >
      <Field label="Note" hint="What others should know: the cause, the ticket, what was done.">
        {(ids) => (
          <TextArea
            {...ids}
            className="!font-sans"
            rows={4}
            maxLength={LONGEST}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && next !== note) void save();
            }}
          />
        )}
      </Field>
    </Dialog>
  );
}

function noteRequest({ dagId, mapIndex = -1, runId, taskId }: Noted, note: string | null): Request {
  const path =
    taskId === undefined
      ? apiPath`/dags/${dagId}/dagRuns/${runId}`
      : apiPath`/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}/${mapIndex}`;
  return { method: "PATCH", path, body: { note } };
}

function noteCommand({ dagId, mapIndex = -1, runId, taskId }: Noted, note: string | null): string {
  return commandOf(
    ...["tradewind", taskId === undefined ? "runs" : "tasks", "set", dagId, runId, taskId],
    ...(mapIndex < 0 ? [] : ["--map-index", mapIndex]),
    ...["--note", note ?? ""],
  );
}

/** In a list: this row has a note. */
export function NoteMark({ note }: { readonly note: string | null }) {
  if (note === null) return null;
  return (
    <span title={note} className="shrink-0 text-accent">
      <MessageSquare aria-hidden className="size-3.5" />
      <span className="sr-only">Note: {note}</span>
    </span>
  );
}
