/**
 * Detects work that user code started and that has not ended when the code returns, mostly because an `await` is
 * missing.
 */
import { TaskError } from "../check/errors.ts";
import type { OpenWork, TaskHost } from "./program.ts";
import { withoutOurs } from "./user-code.ts";

/** The number of operations that the message names. */
const SHOWN = 5;

/**
 * The error of code that returned before its work has ended; null if all work is done.
 *
 * @param subject The code: `task "load"`.
 * @param remedy An alternative to `await`.
 */
export async function openWorkError(
  host: TaskHost,
  subject: string,
  remedy?: string,
): Promise<TaskError | null> {
  // A stopped task may leave a request behind: its answer is no longer needed.
  if (host.openWork === undefined || host.abort.aborted) return null;
  const open = await host.openWork();
  if (open.length === 0) return null;
  const error = new TaskError(
    "TW_WORK_LEFT_OPEN",
    `${subject} returned while work that it started was still open: ${listed(open)}; is an await missing? Write "await load()" instead of "load()"${remedy === undefined ? "" : `, or ${remedy}`}`,
  );
  const frames = open.map(framesOf).find((lines) => lines.length > 0) ?? [];
  error.stack = [`${error.name}: ${error.message}`, ...frames].join("\n");
  return error;
}

function listed(open: readonly OpenWork[]): string {
  const counts = new Map<string, number>();
  for (const work of open) {
    const text = `${work.what}${placeOf(work)}`;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const texts = [...counts].map(([text, count]) => (count === 1 ? text : `${count} × ${text}`));
  const more = texts.length > SHOWN ? `, and ${texts.length - SHOWN} more` : "";
  return texts.slice(0, SHOWN).join(", ") + more;
}

/** The place in the author's code that started the work, if it is known. */
function placeOf(work: OpenWork): string {
  const place = /\(?([^\s()]+:\d+:\d+)\)?$/.exec(framesOf(work)[0] ?? "")?.[1];
  return place === undefined ? "" : ` started at ${place.replace(/^file:\/\/|\?[^:]*/g, "")}`;
}

/** The frames of the author's own files. */
function framesOf({ stack }: OpenWork): string[] {
  const lines = withoutOurs(stack ?? "").split("\n");
  return lines.filter((line) => /^\s+at /.test(line) && !/\(?node:|\/node_modules\//.test(line));
}
