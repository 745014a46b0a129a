/** The run that is meant: by its id, by its logical date in the DAG's time zone, or by how recent it is. */
import { CliError, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { isShownAt, readDate, spanOf, type TypedDate } from "../input/dates.ts";
import { moment } from "../output/when.ts";
import { type Client, path } from "./client.ts";
import { HttpError } from "./http-error.ts";
import type { DagDetails, DagRun } from "./resources.ts";

/** How `<run>` arguments are explained in help texts. */
export const RUN_ARGUMENT =
  "its id, its logical date (2026-11-15 or 2026-11-15T02:00, in the DAG's time zone), @latest, @latest~1 or @failed";

const RECENT = /^@(latest|failed)(?:~(\d{1,6}))?$/;
const CANDIDATES_SHOWN = 10;

export function isRecent(run: string): boolean {
  return RECENT.test(run);
}

export async function findRunId(client: Client, dagId: string, run: string): Promise<string> {
  if (run.startsWith("@")) return findRecent(client, dagId, run);
  const date = readDate(run);
  if (date === null) return run;
  // A run may have been given a date as its id.
  return (await exists(client, dagId, run)) ? run : findByDate(client, dagId, run, date);
}

/** Each run once, in the order in which they were named. */
export async function findRunIds(client: Client, dagId: string, runs: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const run of runs) found.add(await findRunId(client, dagId, run));
  return [...found];
}

/** For `--run` beside `--dag`: a run of any DAG can only be named by its id. */
export async function findRunFilter(
  client: Client,
  { dag, run }: { readonly dag?: string | undefined; readonly run?: string | undefined },
): Promise<string | undefined> {
  if (run === undefined) return undefined;
  if (dag !== undefined) return findRunId(client, dag, run);
  if (run.startsWith("@"))
    throw usageError(`--run ${run} needs a DAG.`, "name it with --dag, or give the id of the run");
  return run;
}

/** UTC for a DAG whose schedule has no time zone. */
export async function zoneOf(client: Client, dagId: string): Promise<string> {
  const what = `cannot read the time zone of ${dagId}`;
  const { timezone } = await client.get<DagDetails>(path`/dags/${dagId}/details`, { what });
  return timezone ?? "UTC";
}

/** The first instant at which clocks in the DAG's time zone show the date. */
export async function instantOf(client: Client, dagId: string, date: TypedDate): Promise<string> {
  const zone = date.offset === null ? await zoneOf(client, dagId) : "UTC";
  return spanOf(date, zone).from.toISOString();
}

async function findRecent(client: Client, dagId: string, run: string): Promise<string> {
  const [, which, back = "0"] = RECENT.exec(run) ?? [];
  if (which === undefined)
    throw usageError(
      `${run} is not a run.`,
      "use @latest, @latest~1 for the one before it, @failed for the latest that failed",
    );
  const skipped = Number(back);
  const page = await client.get<{ dag_runs: DagRun[]; total_entries: number }>(path`/dags/${dagId}/dagRuns`, {
    what: `cannot find the run ${run} of ${dagId}`,
    query: {
      order_by: ["-run_after", "-id"],
      state: which === "failed" ? "failed" : undefined,
      limit: 1,
      offset: skipped,
    },
  });
  const found = page.dag_runs[0];
  if (found) return found.dag_run_id;
  const kind = which === "failed" ? "failed run" : "run";
  const count = page.total_entries;
  if (count > 0)
    throw new CliError(
      "TW_CLI_NO_RUNS",
      `there is no ${run}: the DAG ${dagId} has ${count} ${kind}${count === 1 ? "" : "s"}.`,
      { exit: EXIT.notFound, remedy: `\`tradewind runs list ${dagId}\` shows its runs` },
    );
  throw new CliError("TW_CLI_NO_RUNS", `the DAG ${dagId} has no ${kind}s yet.`, {
    exit: EXIT.notFound,
    remedy:
      which === "failed"
        ? `\`tradewind runs list ${dagId}\` shows its runs`
        : `start one with \`tradewind dags trigger ${dagId}\``,
  });
}

async function findByDate(client: Client, dagId: string, run: string, date: TypedDate): Promise<string> {
  const zone = await zoneOf(client, dagId);
  const { from, to } = spanOf(date, zone);
  const { items } = await client.list<DagRun>({
    path: path`/dags/${dagId}/dagRuns`,
    key: "dag_runs",
    what: `cannot find the run of ${dagId} for ${run}`,
    query: {
      logical_date_gte: from.toISOString(),
      logical_date_lt: to.toISOString(),
      order_by: "logical_date",
    },
    limit: 0,
  });
  // The span of a time that clocks show twice holds times between the two.
  const found = items.filter(({ logical_date: at }) => at !== null && isShownAt(date, zone, at));
  if (found.length === 1) return found[0]!.dag_run_id;
  const when = date.offset === null ? `${run} (${zone})` : run;
  if (found.length === 0)
    throw new CliError("TW_CLI_NO_SUCH_RUN", `no run of ${dagId} has the logical date ${when}.`, {
      exit: EXIT.notFound,
      remedy: `\`tradewind runs list ${dagId} --since ${date.local.slice(0, 10)}\` shows its runs since that day; one without a logical date has only its id`,
    });
  throw new CliError(
    "TW_CLI_RUN_AMBIGUOUS",
    [`${found.length} runs of ${dagId} have the logical date ${when}.`, ...candidates(found)].join("\n"),
    { exit: EXIT.usage, remedy: "name one of them by its id or its exact time" },
  );
}

function candidates(runs: readonly DagRun[]): string[] {
  const shown = runs
    .slice(0, CANDIDATES_SHOWN)
    .map((run) => `  ${run.dag_run_id}  ${moment(run.logical_date)}  ${run.state}`);
  const more = runs.length - shown.length;
  return more > 0 ? [...shown, `  … and ${more} more`] : shown;
}

async function exists(client: Client, dagId: string, runId: string): Promise<boolean> {
  try {
    await client.get(path`/dags/${dagId}/dagRuns/${runId}`, {
      what: `cannot find the run ${runId} of ${dagId}`,
    });
    return true;
  } catch (error) {
    if (error instanceof HttpError && error.status === 404) return false;
    throw error;
  }
}
