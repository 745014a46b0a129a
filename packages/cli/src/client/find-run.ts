/** Finds the run named by a `<run>` argument: an id, a logical date in the DAG's time zone, or @latest and the like. */
import { CliError, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { isShownAt, readDate, spanOf, type TypedDate } from "../input/dates.ts";
import { moment } from "../output/when.ts";
import { type Client, path } from "./client.ts";
import { HttpError } from "./http-error.ts";
import type { DagDetails, DagRun } from "./resources.ts";

/** The help text of `<run>` arguments. */
export const RUN_ARGUMENT =
  "run id, logical date (2026-11-15 or 2026-11-15T02:00, in the DAG's time zone), @latest, @latest~1 or @failed";

const RECENT = /^@(latest|failed)(?:~(\d{1,6}))?$/;
const CANDIDATES_SHOWN = 10;

export function isRecent(run: string): boolean {
  return RECENT.test(run);
}

export async function findRunId(client: Client, dagId: string, run: string): Promise<string> {
  if (run.startsWith("@")) return findRecent(client, dagId, run);
  const date = readDate(run);
  if (date === null) return run;
  // A date may also be the id of a run.
  return (await exists(client, dagId, run)) ? run : findByDate(client, dagId, run, date);
}

/** Without duplicates, in the order given. */
export async function findRunIds(client: Client, dagId: string, runs: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const run of runs) found.add(await findRunId(client, dagId, run));
  return [...found];
}

/** For `--run` with an optional `--dag`: without a DAG, only a run id identifies a run. */
export async function findRunFilter(
  client: Client,
  { dag, run }: { readonly dag?: string | undefined; readonly run?: string | undefined },
): Promise<string | undefined> {
  if (run === undefined) return undefined;
  if (dag !== undefined) return findRunId(client, dag, run);
  if (run.startsWith("@")) throw usageError(`--run ${run} needs a DAG.`, "add --dag, or give the run id");
  return run;
}

/** UTC if the schedule of the DAG has no time zone. */
export async function zoneOf(client: Client, dagId: string): Promise<string> {
  const what = `cannot read the time zone of ${dagId}`;
  const { timezone } = await client.get<DagDetails>(path`/dags/${dagId}/details`, { what });
  return timezone ?? "UTC";
}

/** The first instant at which a clock in the DAG's time zone shows the date. */
export async function instantOf(client: Client, dagId: string, date: TypedDate): Promise<string> {
  const zone = date.offset === null ? await zoneOf(client, dagId) : "UTC";
  return spanOf(date, zone).from.toISOString();
}

async function findRecent(client: Client, dagId: string, run: string): Promise<string> {
  const [, which, back = "0"] = RECENT.exec(run) ?? [];
  if (which === undefined)
    throw usageError(
      `${run} does not name a run.`,
      "use @latest, @latest~1 (the run before it) or @failed (the latest failed run)",
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
      `${run} does not exist: the DAG ${dagId} has ${count} ${kind}${count === 1 ? "" : "s"}.`,
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
  // When clocks go back, the span of a local time also holds instants that do not show that time.
  const found = items.filter(({ logical_date: at }) => at !== null && isShownAt(date, zone, at));
  if (found.length === 1) return found[0]!.dag_run_id;
  const when = date.offset === null ? `${run} (${zone})` : run;
  if (found.length === 0)
    throw new CliError("TW_CLI_NO_SUCH_RUN", `no run of ${dagId} has the logical date ${when}.`, {
      exit: EXIT.notFound,
      remedy: `\`tradewind runs list ${dagId} --since ${date.local.slice(0, 10)}\` shows its runs since that day; name a run without a logical date by its id`,
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
