/**
 * What a user who has just started Tradewind wants to see: which DAGs were found, which files are broken, and each run
 * as it ends. It looks when something happened, for one minute, then leaves the terminal alone. A glance, not a log:
 * what it cannot read it skips.
 */
import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import type { Dag, DagRun, ImportProblem } from "../client/resources.ts";
import { DEFAULT_HOME } from "../client/target.ts";
import type { Session } from "../session.ts";
import { finishedLine } from "./run-view.ts";

const LASTS_MS = 60_000;
/** What happens within this time is looked at together. */
const GAP_MS = 500;
/** A wake-up may get lost. */
const FALLBACK_MS = 10_000;
/** So long after the first DAG, whatever is due has been started. */
const QUIET_MS = 3_000;

export interface FirstMinute {
  readonly since: Date;
  /** Calls with the topic of what happened, "" for anything. */
  readonly watch: (onTopic: (topic: string) => void) => Promise<{ close(): Promise<void> }>;
  readonly signal: AbortSignal;
}

export async function showFirstMinute(
  session: Session,
  client: Client,
  { since, watch, signal }: FirstMinute,
): Promise<void> {
  const shown = { dags: new Set<string>(), problems: new Set<string>(), runs: new Set<string>() };
  const over = AbortSignal.any([
    signal,
    AbortSignal.timeout(Math.max(0, since.getTime() + LASTS_MS - Date.now())),
  ]);
  const news = new News();
  const watching = await watch((topic) => news.hear(topic)).catch(() => undefined);
  let hint: Promise<void> | undefined;
  while (!over.aborted) {
    const { dags, runs } = news.take();
    try {
      // A question once asked is heard to its end: the server that answers is about to be stopped by this process.
      if (dags) await showDags(session, client, shown.dags);
      if (shown.dags.size > 0) hint ??= hintWhenQuiet(session, client, { shown: shown.runs, over });
      if (dags && !signal.aborted) await showProblems(session, client, shown.problems);
      if (runs && !signal.aborted) await showRuns(session, client, { shown: shown.runs, since });
    } catch (error) {
      news.hear("");
      if (session.options.verbose)
        session.note(`  (${error instanceof Error ? error.message : String(error)})`);
    }
    await sleep(GAP_MS, undefined, { signal: over, ref: false }).catch(() => {});
    await news.next(over);
  }
  await hint;
  await watching?.close();
  if (!signal.aborted)
    session.note(
      "  (No more news here: `tradewind runs list` and `tradewind dags errors` show what happens.)",
    );
}

/** What has happened since it was last looked at. */
class News {
  readonly #bell = new EventEmitter();
  #dags = true;
  #runs = true;

  hear(topic: string): void {
    this.#dags ||= topic === "" || topic === "dags";
    this.#runs ||= topic === "" || topic === "ended" || topic.startsWith("run:");
    if (this.#dags || this.#runs) this.#bell.emit("news");
  }

  take(): { readonly dags: boolean; readonly runs: boolean } {
    const taken = { dags: this.#dags, runs: this.#runs };
    this.#dags = false;
    this.#runs = false;
    return taken;
  }

  async next(over: AbortSignal): Promise<void> {
    if (this.#dags || this.#runs) return;
    const signal = AbortSignal.any([over, AbortSignal.timeout(FALLBACK_MS)]);
    await once(this.#bell, "news", { signal }).catch(() => this.hear(""));
  }
}

async function showDags(session: Session, client: Client, shown: Set<string>): Promise<void> {
  const what = "cannot list the DAGs";
  const { items, total } = await client.list<Dag>({ path: "/dags", key: "dags", what, limit: 100 });
  const fresh = items.filter((dag) => !shown.has(dag.dag_id)).map((dag) => dag.dag_id);
  if (fresh.length === 0) return;
  for (const id of fresh) shown.add(id);
  const named = fresh.slice(0, 8).join(", ");
  session.note(`  ${total} DAG${total === 1 ? "" : "s"} loaded: ${named}${fresh.length > 8 ? " …" : ""}`);
}

async function showProblems(session: Session, client: Client, shown: Set<string>): Promise<void> {
  const { items, total } = await client.list<ImportProblem>({
    path: "/importErrors",
    key: "import_errors",
    what: "cannot list the import errors",
    limit: 20,
  });
  for (const { filename, stack_trace, timestamp } of items) {
    if (shown.has(`${filename} ${timestamp}`)) continue;
    shown.add(`${filename} ${timestamp}`);
    session.note(`${session.terminal.paintNote("red", "✗")} ${filename} cannot be loaded:`);
    session.note(
      stack_trace
        .trimEnd()
        .split("\n")
        .slice(0, 12)
        .map((line) => `    ${line}`)
        .join("\n"),
    );
  }
  const left = total - items.length;
  if (left <= 0 || shown.has(`${left} more`)) return;
  shown.add(`${left} more`);
  session.note(`  … and ${left} more: tradewind dags errors`);
}

async function showRuns(
  session: Session,
  client: Client,
  glance: { shown: Set<string>; since: Date },
): Promise<void> {
  const { items } = await client.list<DagRun>({
    path: "/dags/~/dagRuns",
    key: "dag_runs",
    what: "cannot list the runs",
    query: { state: ["success", "failed"], end_date_gte: glance.since.toISOString(), order_by: "-end_date" },
    limit: 20,
  });
  for (const run of items.toReversed()) {
    const key = `${run.dag_id} ${run.dag_run_id} ${run.end_date}`;
    if (glance.shown.has(key)) continue;
    glance.shown.add(key);
    session.note(finishedLine(session.terminal, run));
  }
}

/** A second start has nothing to show when no run is due: whoever waits for one is told how to get it. */
async function hintWhenQuiet(
  session: Session,
  client: Client,
  { shown, over }: { shown: ReadonlySet<string>; over: AbortSignal },
): Promise<void> {
  await sleep(QUIET_MS, undefined, { signal: over, ref: false }).catch(() => {});
  if (over.aborted || shown.size > 0) return;
  const about = { what: "cannot look for a run", limit: 1 };
  try {
    const query = { state: ["queued", "running"] };
    const runs = await client.list<DagRun>({ ...about, path: "/dags/~/dagRuns", key: "dag_runs", query });
    const dags = await client.list<Dag>({ ...about, path: "/dags", key: "dags", query: { paused: false } });
    const dag = dags.items[0];
    if (runs.total > 0 || dag === undefined || over.aborted) return;
    session.note(
      `  No run is due now. Start one: \`${commandOf(session)} dags trigger ${dag.dag_id} --wait\``,
    );
  } catch {
    // A hint is worth no error.
  }
}

/** What to type in another terminal to reach this installation. */
function commandOf(session: Session): string {
  // Started by an npm script: the command is among the project's own, and not on the path of a terminal.
  const name = session.host.env.npm_lifecycle_event ? "npx tradewind" : "tradewind";
  return session.home === DEFAULT_HOME ? name : `${name} --home ${session.home}`;
}
