/**
 * The terminal output of a standalone. In the first minute: loaded DAGs, broken files, and each run that ends. After that:
 * broken files and failed runs only. It queries after events. It is an overview, not a log: after a failed query, the items are
 * shown with the next event.
 */
import { EventEmitter, once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { firstFailure } from "../client/first-failure.ts";
import type { Dag, DagRun, ImportProblem } from "../client/resources.ts";
import { DEFAULT_HOME } from "../client/target.ts";
import type { Session } from "../session.ts";
import { failureText, finishedLine } from "./run-view.ts";
import { SourcePaths } from "./source-paths.ts";

const FIRST_MINUTE_MS = 60_000;
/** Events within this time are shown together. */
const GAP_MS = 500;
/** The backstop for a lost wake-up. */
const FALLBACK_MS = 10_000;
/** By this time after the first DAG, due runs have started. */
const QUIET_MS = 3_000;
const RUNS_SHOWN = 20;

export interface ActivityOptions {
  /** The DAG folder. */
  readonly dags: string;
  readonly since: Date;
  /** Calls back with the topic of each event; "" means any topic. */
  readonly watch: (onTopic: (topic: string) => void) => Promise<{ close(): Promise<void> }>;
  readonly signal: AbortSignal;
}

/** Items already shown. */
interface Shown {
  readonly dags: Set<string>;
  readonly problems: Set<string>;
  readonly succeeded: Set<string>;
  readonly failed: Set<string>;
}

export async function showActivity(
  session: Session,
  client: Client,
  { dags: folder, since, watch, signal }: ActivityOptions,
): Promise<void> {
  const shown: Shown = {
    dags: new Set(),
    problems: new Set(),
    succeeded: new Set(),
    failed: new Set(),
  };
  const ends = since.getTime() + FIRST_MINUTE_MS;
  const news = new News();
  const paths = new SourcePaths([folder]);
  const watching = await watch((topic) => news.receive(topic)).catch(() => undefined);
  const hint = hintWhenQuiet(session, client, { folder, shown, signal });
  let isFirstMinute = true;
  let from = since;
  while (!signal.aborted) {
    if (isFirstMinute && Date.now() > ends) {
      isFirstMinute = false;
      session.note("  (From now on, only failed runs and broken files are shown here.)");
    }
    const { dags, runs } = news.drain();
    try {
      // Await the request even during a stop: this process also runs the server that answers it.
      if (dags && isFirstMinute) await showDags(session, client, shown.dags);
      if (dags && !signal.aborted) await showProblems(session, client, { shown: shown.problems, paths });
      if (runs && !signal.aborted && isFirstMinute) await showRuns(session, client, { shown, from: since });
      if (runs && !signal.aborted) from = await showFailedRuns(session, client, { shown, from });
    } catch (error) {
      news.receive("");
      if (session.options.verbose)
        session.note(`  (${error instanceof Error ? error.message : String(error)})`);
    }
    await sleep(GAP_MS, undefined, { signal, ref: false }).catch(() => {});
    await news.next(signal);
  }
  await hint;
  await watching?.close();
}

/** Collects events until the next query. */
class News {
  readonly #bell = new EventEmitter();
  #dags = true;
  #runs = true;

  receive(topic: string): void {
    this.#dags ||= topic === "" || topic === "dags";
    this.#runs ||= topic === "" || topic === "ended" || topic.startsWith("run:");
    if (this.#dags || this.#runs) this.#bell.emit("news");
  }

  drain(): { readonly dags: boolean; readonly runs: boolean } {
    const taken = { dags: this.#dags, runs: this.#runs };
    this.#dags = false;
    this.#runs = false;
    return taken;
  }

  async next(over: AbortSignal): Promise<void> {
    if (this.#dags || this.#runs) return;
    const signal = AbortSignal.any([over, AbortSignal.timeout(FALLBACK_MS)]);
    await once(this.#bell, "news", { signal }).catch(() => this.receive(""));
  }
}

async function showDags(session: Session, client: Client, shown: Set<string>): Promise<void> {
  const what = "cannot list the DAGs";
  const { items, total } = await client.list<Dag>({ path: "/dags", key: "dags", what, limit: 100 });
  const fresh = items.filter((dag) => !shown.has(dag.dag_id)).map((dag) => dag.dag_id);
  if (fresh.length === 0) return;
  const isFirst = shown.size === 0;
  for (const id of fresh) shown.add(id);
  const count = isFirst ? total : fresh.length;
  const named = fresh.slice(0, 8).join(", ");
  const rest = count > 8 ? ` and ${count - 8} more` : "";
  const all = isFirst ? "" : ` (${total} in all)`;
  session.note(
    `  ${count} ${isFirst ? "" : "more "}DAG${count === 1 ? "" : "s"} loaded: ${named}${rest}${all}`,
  );
}

async function showProblems(
  session: Session,
  client: Client,
  { paths, shown }: { readonly paths: SourcePaths; readonly shown: Set<string> },
): Promise<void> {
  const { items, total } = await client.list<ImportProblem>({
    path: "/importErrors",
    key: "import_errors",
    what: "cannot list the import errors",
    limit: 20,
  });
  for (const { filename, stack_trace, timestamp } of items) {
    if (shown.has(`${filename} ${timestamp}`)) continue;
    shown.add(`${filename} ${timestamp}`);
    session.note(`${session.terminal.paintNote("red", "✗")} ${paths.file(filename)} failed to load:`);
    session.note(
      paths
        .inImportError(stack_trace)
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

const endedRuns = (client: Client, state: "success" | "failed", from: Date, limit: number) =>
  client.list<DagRun>({
    path: "/dags/~/dagRuns",
    key: "dag_runs",
    what: "cannot list the runs",
    query: {
      state,
      end_date_gte: from.toISOString(),
      order_by: state === "success" ? "-end_date" : "end_date",
    },
    limit,
  });

const keyOf = (run: DagRun) => `${run.dag_id} ${run.dag_run_id} ${run.end_date}`;

interface RunsSince {
  readonly shown: Shown;
  readonly from: Date;
}

async function showRuns(session: Session, client: Client, { shown, from }: RunsSince): Promise<void> {
  const { items } = await endedRuns(client, "success", from, RUNS_SHOWN);
  for (const run of items.toReversed()) {
    if (shown.succeeded.has(keyOf(run))) continue;
    shown.succeeded.add(keyOf(run));
    session.note(finishedLine(session.terminal, run));
  }
}

/** Shows every failed run with its first failure. @returns The start of the next query. */
async function showFailedRuns(session: Session, client: Client, { shown, from }: RunsSince): Promise<Date> {
  const { items } = await endedRuns(client, "failed", from, 1_000);
  for (const run of items) {
    if (shown.failed.has(keyOf(run))) continue;
    const path = `/dags/${encodeURIComponent(run.dag_id)}/dagRuns/${encodeURIComponent(run.dag_run_id)}`;
    const failure = await firstFailure(client, path);
    session.note(finishedLine(session.terminal, run));
    if (failure) session.note(`    ${failureText(failure)}`);
    shown.failed.add(keyOf(run));
  }
  const last = items.at(-1)?.end_date;
  if (!last) return from;
  // More runs that ended in this millisecond may still be stored; earlier runs are not listed again.
  for (const key of shown.failed) if (!key.endsWith(last)) shown.failed.delete(key);
  return new Date(last);
}

/** If nothing happens, shows how to write the first DAG or how to start a run. */
async function hintWhenQuiet(
  session: Session,
  client: Client,
  { folder, shown, signal }: { folder: string; shown: Shown; signal: AbortSignal },
): Promise<void> {
  await sleep(QUIET_MS, undefined, { signal, ref: false }).catch(() => {});
  if (signal.aborted || shown.succeeded.size + shown.failed.size > 0) return;
  const about = { what: "cannot look for a run", limit: 1 };
  try {
    if (!(await hasCode(folder))) return session.note(firstDag(folder));
    const query = { state: ["queued", "running"] };
    const dags = await client.list<Dag>({ ...about, path: "/dags", key: "dags", query: { paused: false } });
    const runs = await client.list<DagRun>({ ...about, path: "/dags/~/dagRuns", key: "dag_runs", query });
    const dag = dags.items[0];
    if (runs.total > 0 || dag === undefined || signal.aborted) return;
    session.note(
      `  No run is due now. Start one: \`${commandOf(session)} dags trigger ${dag.dag_id} --wait\``,
    );
  } catch {
    // The hint is optional.
  }
}

async function hasCode(folder: string): Promise<boolean> {
  return (await readdir(folder, { recursive: true })).some((name) => /\.[cm]?[jt]s$/.test(name));
}

function firstDag(folder: string): string {
  return `  There is no DAG in ${folder} yet. A DAG file imports "tradewind" and exports a DAG; save this as ${join(folder, "hello.ts")}:

    import { dag, once } from "tradewind";

    export default dag("hello", { schedule: once() }, (d) => {
      d.task("greet", () => "Hello, world!");
    });
`;
}

/** The command that reaches this installation from another terminal. */
function commandOf(session: Session): string {
  // Started by an npm script: the command is in the project's node_modules, not on the PATH. Source code runs
  // by the script of the repository.
  const npm = process.execArgv.includes("--conditions=source") ? "npm run -s tradewind --" : "npx tradewind";
  const name = session.host.env.npm_lifecycle_event ? npm : "tradewind";
  return session.home === DEFAULT_HOME ? name : `${name} --home ${session.home}`;
}
