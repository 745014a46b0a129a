/** The log lines of all tasks of a run, each prefixed with its task; on a terminal in a colour per task. */
import { instanceText } from "@tradewind/sdk/wording";
import type { RunLogEntry } from "../client/run-log.ts";
import type { Session } from "../session.ts";
import { plainLine, type Style } from "../terminal.ts";
import { ShownEntries } from "./log-line.ts";
import { SourcePaths } from "./source-paths.ts";
import { displayWidth, truncate } from "./table.ts";

const COLOURS: readonly Style[] = ["cyan", "yellow", "green", "magenta", "blue"];
const WIDEST_NAME = 40;

/** Returns the number of entries. */
export async function printRunLog(session: Session, entries: AsyncIterable<RunLogEntry>): Promise<number> {
  const { terminal } = session;
  const paths = SourcePaths.of(session);
  const names = new TaskNames();
  const shown = new Map<string, ShownEntries>();
  let count = 0;
  for await (const entry of entries) {
    count++;
    if (session.format === "json") {
      await terminal.pour(`${JSON.stringify(entry)}\n`);
      continue;
    }
    const ofAttempt = shown.get(entry.attempt) ?? new ShownEntries(session, paths);
    shown.set(entry.attempt, ofAttempt);
    const text = ofAttempt.text(entry.line);
    if (text === null) continue;
    const { colour, name } = names.of(entry);
    const prefix = terminal.paint(colour, `${name} |`);
    for (const line of text.split("\n")) await terminal.pour(`${prefix} ${line}\n`);
  }
  return count;
}

/** Pads names to the longest one so far. */
class TaskNames {
  readonly #colours = new Map<string | null, Style>();
  #width = 0;

  of(entry: RunLogEntry): { readonly name: string; readonly colour: Style } {
    const { task_id } = entry;
    const colour = this.#colours.get(task_id) ?? COLOURS[this.#colours.size % COLOURS.length]!;
    this.#colours.set(task_id, colour);
    const name = truncate(plainLine(nameOf(entry)), WIDEST_NAME);
    this.#width = Math.max(this.#width, displayWidth(name));
    return { colour, name: name + " ".repeat(this.#width - displayWidth(name)) };
  }
}

/** `load`, `load[3]`, `load[3] #2` for its second try, `load callback`, `callback` for one of the run. */
function nameOf({ attempt, map_index, task_id, try_number }: RunLogEntry): string {
  if (task_id === null) {
    const [kind, file = ""] = attempt.split("/");
    const owner = file.replace(/-(?:[0-9a-f-]{36}|\d+)$/, "");
    const what = kind === "signals" ? "onSignal" : "callback";
    return owner === "run" ? what : `${owner} ${what}`;
  }
  return `${instanceText(task_id, map_index, null)}${try_number !== null && try_number > 1 ? ` #${try_number}` : ""}`;
}
