/**
 * What a user who has just started Tradewind wants to see: which DAGs were found, which files are broken, and each run
 * as it ends. It looks for one minute, then leaves the terminal alone. A glance, not a log: what it cannot read it skips.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import type { Dag, DagRun, ImportProblem } from "../client/resources.ts";
import type { Session } from "../session.ts";
import { finishedLine } from "./run-view.ts";

const LASTS_MS = 60_000;
const PAUSE_MS = 500;

export async function showFirstMinute(
  session: Session,
  client: Client,
  { since, signal }: { since: Date; signal: AbortSignal },
): Promise<void> {
  const shown = { dags: new Set<string>(), problems: new Set<string>(), runs: new Set<string>() };
  while (!signal.aborted && Date.now() - since.getTime() < LASTS_MS) {
    try {
      // A question once asked is heard to its end: the server that answers is about to be stopped by this process.
      await showDags(session, client, shown.dags);
      if (!signal.aborted) await showProblems(session, client, shown.problems);
      if (!signal.aborted) await showRuns(session, client, { shown: shown.runs, since });
    } catch (error) {
      if (session.options.verbose)
        session.note(`  (${error instanceof Error ? error.message : String(error)})`);
    }
    await sleep(PAUSE_MS, undefined, { signal, ref: false }).catch(() => {});
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
  const { items } = await client.list<ImportProblem>({
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
