import { Command, Option } from "@commander-js/extra-typings";
import { type Backfill, type DryRun, type MadeBackfill, readProgress } from "../../client/backfills.ts";
import { type Client, path } from "../../client/client.ts";
import { zoneOf } from "../../client/find-run.ts";
import { requireNamed } from "../../client/named-filter.ts";
import { CliError, usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { parseDate, spanOf, type TypedDate } from "../../input/dates.ts";
import { parseConf, parseDuration, wholeNumber } from "../../input/values.ts";
import {
  backfillColumns,
  backfillFields,
  dryRunColumns,
  dryRunSummary,
  watchBackfill,
} from "../../output/backfill-view.ts";
import { moment } from "../../output/when.ts";
import type { Session } from "../../session.ts";
import { serve } from "../service/service.ts";
import { PARALLELISM } from "../service/slot-options.ts";

/** A custom timetable may need long to list the dates. */
const LISTING_MS = 60_000;
const ID = "number of the backfill, from `tradewind backfill list`";

export function command(session: Session) {
  const backfill = new Command("backfill")
    .description("create, watch, pause, change and cancel backfills")
    .addHelpText(
      "after",
      examples(
        "tradewind backfill create etl --from 2026-01-01 --to 2026-01-31 --wait",
        "tradewind backfill list --active",
      ),
    );
  const { terminal } = session;

  backfill
    .command("create")
    .description("run the schedule of a DAG for a range of past dates, both ends included")
    .addHelpText(
      "after",
      examples(
        "# preview what happens to each date, then create it",
        "tradewind backfill create etl --from 2026-01-01 --to 2026-01-31 --dry-run",
        "tradewind backfill create etl --from 2026-01-01 --to 2026-01-31 --wait",
        "# latest date first",
        "tradewind backfill create etl --from 2026-01-01 --to 2026-01-31 --reverse",
      ),
    )
    .argument("<dag>")
    .requiredOption(
      "--from <date>",
      "first logical date: 2026-01-01 or 2026-01-01T08:00, in the DAG's time zone",
      parseDate,
    )
    .requiredOption("--to <date>", "last logical date (a day is included as a whole)", parseDate)
    .addOption(
      new Option("--reprocess <which>", "rerun dates that already have a run")
        .choices(["none", "failed", "completed"] as const)
        .default("none" as const),
    )
    .option("--reverse", "run the latest date first")
    .option("--max-active <n>", "maximum number of concurrent runs", wholeNumber(1), 10)
    .option("--conf <json>", "params of the runs: a JSON object, @file, or @- for stdin", parseConf)
    .option("--stop-on-failure", "start no more runs after the first failed run")
    .option("--pin-version", "use the current version of the DAG for all runs, even if it changes")
    .option("--dry-run", "only show what would happen to each date")
    .option("--wait", "wait for the end of the backfill")
    .action(async (dag, options) => {
      const body = {
        dag_id: dag,
        ...(await rangeBody(session.client, dag, options)),
        reprocess_behavior: options.reprocess,
        run_backwards: options.reverse === true,
        max_active_runs: options.maxActive,
        stop_on_failure: options.stopOnFailure === true,
        ...(options.pinVersion ? { run_on_latest_version: false } : {}),
        ...(options.conf === undefined ? {} : { dag_run_conf: options.conf }),
      };
      const what = `cannot create a backfill of ${dag}`;
      if (options.dryRun) {
        const answer = await session.client
          .post<DryRun>("/backfills/dry_run", { what, body, timeoutMs: LISTING_MS })
          .catch(nameOptions);
        const listed = { items: answer.backfills, total: answer.backfills.length };
        await session.printList(listed, dryRunColumns(terminal), "Nothing to do.");
        for (const line of dryRunSummary(answer)) session.note(line);
        return;
      }
      const made = await session.client
        .post<MadeBackfill>("/backfills", { what, body, idempotent: true, timeoutMs: LISTING_MS })
        .catch(nameOptions);
      const runs = `${made.total_runs} run${made.total_runs === 1 ? "" : "s"}`;
      const dates = `dates ${moment(made.first_date)} to ${moment(made.last_date)}`;
      const sentence = `Backfill ${made.id} of ${dag}: ${runs}, at most ${made.max_active_runs} at once, ${dates}.`;
      if (made.waits_because === "the DAG is paused")
        session.note(`The DAG is paused. Its runs start after \`tradewind dags unpause ${dag}\`.`);
      if (!options.wait) {
        await session.printDone(made, `${sentence} Watch it with \`tradewind backfill wait ${made.id}\`.`);
        return;
      }
      session.note(sentence);
      session.exitCode = await watchBackfill(session, { id: made.id, timeoutMs: undefined });
    });

  backfill
    .command("list")
    .description("list backfills, newest first")
    .addHelpText("after", examples("tradewind backfill list", "tradewind backfill list etl --active"))
    .argument("[dag]", "only backfills of this DAG")
    .option("--active", "only backfills that have not ended")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 25)
    .action(async (dag, { active, limit }) => {
      const what = "cannot list the backfills";
      const listed = await session.client.list<Backfill>({
        path: "/backfills",
        key: "backfills",
        what,
        query: { dag_id: dag, active: active ? true : undefined, order_by: "-id" },
        limit,
      });
      await requireNamed(session.client, what, listed, { dag });
      const zones = await zonesOf(session.client, new Set(listed.items.map(({ dag_id }) => dag_id)));
      await session.printList(listed, backfillColumns(terminal, zones), "No backfills match.");
    });

  backfill
    .command("show")
    .description("show a backfill and its progress")
    .addHelpText("after", examples("tradewind backfill show 7"))
    .argument("<id>", ID, wholeNumber(0))
    .action(async (id) => {
      const progress = await readProgress(session.client, id);
      const { dag_id } = progress.backfill;
      const zones = await zonesOf(session.client, [dag_id]);
      await session.printObject(progress, backfillFields(progress, zones.get(dag_id) ?? "UTC"));
    });

  backfill
    .command("wait")
    .description("wait for the end of a backfill; exit 0 on success, 1 on failure, 124 on timeout")
    .addHelpText("after", examples("tradewind backfill wait 7 --timeout 2h"))
    .argument("<id>", ID, wholeNumber(0))
    .option("--timeout <duration>", "stop waiting after this time, e.g. 90s, 15m", parseDuration)
    .action(async (id, { timeout }) => {
      session.exitCode = await watchBackfill(session, { id, timeoutMs: timeout });
    });

  const change = async (
    id: number,
    request: { what: string; to: string; done: string; query?: { let_finish: boolean } },
  ) => {
    const changed = await session.client.put<Backfill>(path`/backfills/${id}/${request.to}`, {
      what: request.what,
      ...(request.query ? { query: request.query } : {}),
    });
    await session.printDone(changed, request.done);
  };

  backfill
    .command("pause")
    .description("pause a backfill: start no more runs, let running ones finish")
    .addHelpText("after", examples("tradewind backfill pause 7"))
    .argument("<id>", ID, wholeNumber(0))
    .action((id) =>
      change(id, { to: "pause", what: `cannot pause the backfill ${id}`, done: `Backfill ${id} is paused.` }),
    );

  backfill
    .command("unpause")
    .description("resume a paused backfill")
    .addHelpText("after", examples("tradewind backfill unpause 7"))
    .argument("<id>", ID, wholeNumber(0))
    .action((id) =>
      change(id, {
        to: "unpause",
        what: `cannot unpause the backfill ${id}`,
        done: `Backfill ${id} is resumed.`,
      }),
    );

  backfill
    .command("cancel")
    .description("cancel a backfill and its running runs, which end as failed")
    .addHelpText("after", examples("tradewind backfill cancel 7", "tradewind backfill cancel 7 --let-finish"))
    .argument("<id>", ID, wholeNumber(0))
    .option("--let-finish", "let running runs finish")
    .action(async (id, { letFinish }) => {
      if (!letFinish) await session.confirm(`Cancel backfill ${id} and its running runs?`);
      await change(id, {
        to: "cancel",
        query: { let_finish: letFinish === true },
        what: `cannot cancel the backfill ${id}`,
        done: letFinish
          ? `Backfill ${id} is cancelled; its running runs finish.`
          : `Backfill ${id} is cancelled.`,
      });
    });

  backfill
    .command("set")
    .description("change the options of a backfill")
    .addHelpText("after", examples("tradewind backfill set 7 --max-active 4"))
    .argument("<id>", ID, wholeNumber(0))
    .option("--max-active <n>", "maximum number of concurrent runs", wholeNumber(1))
    .option("--stop-on-failure", "start no more runs after the first failed run")
    .option("--no-stop-on-failure", "continue after failed runs")
    .action(async (id, options) => {
      if (options.maxActive === undefined && options.stopOnFailure === undefined)
        throw usageError("no change given.", "give --max-active or --[no-]stop-on-failure");
      const changed = await session.client.patch<Backfill>(path`/backfills/${id}`, {
        what: `cannot change the backfill ${id}`,
        body: { max_active_runs: options.maxActive, stop_on_failure: options.stopOnFailure },
      });
      await session.printDone(
        changed,
        `Backfill ${id}: at most ${changed.max_active_runs} runs at once, ${changed.stop_on_failure ? "stops" : "continues"} after a failure.`,
      );
    });

  backfill
    .command("serve")
    .description("run a service for backfills only, on DATABASE_URL; run as many as you need")
    .addHelpText("after", examples("tradewind backfill serve --parallelism 16"))
    .addOption(PARALLELISM)
    .option(
      "--drain <duration>",
      "time for running tasks to finish after SIGTERM (TRADEWIND_DRAIN; default: 20s)",
    )
    .action(async (options) => {
      const { resolveConfig, startBackfillRunner } = await import("@tradewind/engine");
      const config = resolveConfig(
        { ...options, drainMs: options.drain, home: session.options.home },
        session.host.env,
      );
      await serve(
        session,
        (signal) => startBackfillRunner(config, signal),
        () => session.note("Waiting for backfills."),
      );
    });

  return backfill;
}

const OPTIONS: Readonly<Record<string, string>> = {
  from_date: "--from",
  to_date: "--to",
  reprocess_behavior: "--reprocess",
  max_active_runs: "--max-active",
  dag_run_conf: "--conf",
};

/** @throws The error with its fields renamed to the options on the command line. */
function nameOptions(error: unknown): never {
  if (!(error instanceof CliError) || error.fields.length === 0) throw error;
  const fields = error.fields.map(({ field, message }) => ({ field: OPTIONS[field] ?? field, message }));
  const { code, exit, message, remedy } = error;
  throw new CliError(code, message, { exit, remedy, fields, cause: error });
}

/** Without deleted DAGs. */
async function zonesOf(client: Client, dagIds: Iterable<string>): Promise<ReadonlyMap<string, string>> {
  const zones = new Map<string, string>();
  for (const dagId of dagIds) {
    const zone = await zoneOf(client, dagId).catch((error: unknown) => {
      if (error instanceof CliError && error.exit === EXIT.notFound) return null;
      throw error;
    });
    if (zone !== null) zones.set(dagId, zone);
  }
  return zones;
}

/** Days without an offset are sent unchanged: the server applies the time zone of the schedule. */
async function rangeBody(
  client: Client,
  dag: string,
  { from, to }: { readonly from: TypedDate; readonly to: TypedDate },
) {
  const isDay = ({ local }: TypedDate) => !local.includes("T");
  const isExact = (date: TypedDate) => !isDay(date) || date.offset !== null;
  const isLocal = [from, to].some((date) => isExact(date) && date.offset === null);
  const zone = isLocal ? await zoneOf(client, dag) : "UTC";
  const first = (date: TypedDate) => spanOf(date, zone).from.toISOString();
  const last = (date: TypedDate) => new Date(spanOf(date, zone).to.getTime() - 1).toISOString();
  return {
    from_date: isExact(from) ? first(from) : from.local,
    to_date: isExact(to) ? (isDay(to) ? last(to) : first(to)) : to.local,
  };
}
