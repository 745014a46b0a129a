import { Command } from "@commander-js/extra-typings";
import { path } from "../client/client.ts";
import type { Dag, DagDetails, DagRun, Task } from "../client/resources.ts";
import { parseTestSignal } from "../dag-test/given-signal.ts";
import { examples } from "../examples.ts";
import { parseTestConnections } from "../input/connection-uri.ts";
import {
  parseConf,
  parseDuration,
  parseInstant,
  parseJson,
  parsePairs,
  wholeNumber,
} from "../input/values.ts";
import { paramLines } from "../output/params.ts";
import { runFields, watchRun } from "../output/run-view.ts";
import type { Column } from "../output/table.ts";
import { renderTable } from "../output/table.ts";
import { moment, relativeTime, span } from "../output/when.ts";
import type { Session } from "../session.ts";
import { addErrorsCommand, noteImportErrors } from "./dag-errors.ts";
import { addVersionCommands } from "./dag-versions.ts";

export function command(session: Session) {
  const dags = new Command("dags").description("list, show, compare, trigger, pause and test DAGs");

  dags
    .command("list")
    .description("list the DAGs")
    .option("--tag <tag...>", "only with these tags")
    .option("--paused", "only the paused ones")
    .option("--stale", "also those whose file is gone")
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async ({ tag, paused, stale, limit }) => {
      const listed = await session.client.list<Dag>({
        path: "/dags",
        key: "dags",
        what: "cannot list the DAGs",
        query: { tags: tag, paused, exclude_stale: stale ? false : undefined },
        limit,
      });
      await session.printList(
        listed,
        columns(session),
        tag || paused
          ? "There is no such DAG."
          : "There are no DAGs yet: put a file that exports one into the DAG folder.",
      );
      await noteImportErrors(session);
    });

  dags
    .command("show")
    .description("show one DAG and its tasks")
    .argument("<dag>")
    .action(async (dagId) => {
      const what = `cannot show the DAG ${dagId}`;
      const [dag, { tasks }] = await Promise.all([
        session.client.get<DagDetails>(path`/dags/${dagId}/details`, { what }),
        session.client.get<{ tasks: Task[] }>(path`/dags/${dagId}/tasks`, { what }),
      ]);
      await session.printObject({ ...dag, tasks }, dagFields(dag));
      if (session.format !== "table" || tasks.length === 0) return;
      session.terminal.data("");
      const [head, ...lines] = renderTable(tasks, TASK_COLUMNS, session.terminal.width);
      session.terminal.data(session.terminal.paint("bold", head!));
      for (const line of lines) session.terminal.data(line);
    });

  addErrorsCommand(dags, session);
  addVersionCommands(dags, session);

  dags
    .command("trigger")
    .description("start a run of a DAG")
    .argument("<dag>")
    .option("--conf <json>", "the run's params: a JSON object, @file, or @- for standard input", parseConf)
    .option("--logical-date <date>", "the moment the run stands for", parseInstant)
    .option("--run-id <id>", "the run's own id; a second run with it is refused")
    .option("--note <text>", "a note on the run")
    .option("--wait", "watch the run until it has ended; exit 1 when it failed")
    .option("--timeout <duration>", "with --wait: stop watching after this time, e.g. 15m", parseDuration)
    .addHelpText(
      "after",
      examples(
        "tradewind dags trigger etl",
        `tradewind dags trigger etl --conf '{"region":"eu"}' --logical-date 2026-11-15`,
        "# in a script: exit 1 and the first failure when the run fails",
        "tradewind dags trigger etl --wait --timeout 30m",
      ),
    )
    .action(async (dagId, options) => {
      const run = await session.client.post<DagRun>(path`/dags/${dagId}/dagRuns`, {
        what: `cannot trigger ${dagId}`,
        body: {
          // Airflow's API wants the field, and takes null for "none".
          logical_date: options.logicalDate ?? null,
          ...(options.conf === undefined ? {} : { conf: options.conf }),
          ...(options.runId === undefined ? {} : { dag_run_id: options.runId }),
          ...(options.note === undefined ? {} : { note: options.note }),
        },
        idempotent: true,
      });
      if (session.format === "table" && !options.wait) session.terminal.data(run.dag_run_id);
      session.note(`Run ${run.dag_run_id} of ${dagId} is ${run.state}.`);
      await noteIfPaused(session, dagId);
      if (options.wait)
        session.exitCode = await watchRun(session, {
          dagId,
          runId: run.dag_run_id,
          timeoutMs: options.timeout,
        });
      if (session.format === "table") return;
      const what = `cannot show the run ${run.dag_run_id}`;
      const now = options.wait
        ? await session.client.get<DagRun>(path`/dags/${dagId}/dagRuns/${run.dag_run_id}`, { what })
        : run;
      await session.printObject(now, runFields(now));
    });

  for (const [name, isPaused, done] of [
    ["pause", true, "paused: its schedule makes no new runs, and no run or task of it starts"],
    ["unpause", false, "active"],
  ] as const) {
    dags
      .command(name)
      .description(isPaused ? "stop the schedule of a DAG" : "let the schedule of a DAG go on")
      .argument("<dag...>")
      .action(async (dagIds) => {
        const changed: Dag[] = [];
        for (const dagId of dagIds) {
          changed.push(
            await session.client.patch<Dag>(path`/dags/${dagId}`, {
              what: `cannot ${name} ${dagId}`,
              body: { is_paused: isPaused },
            }),
          );
          if (session.format === "table") session.note(`DAG ${dagId} is ${done}.`);
        }
        if (session.format !== "table") await session.printDone(changed, "");
      });
  }

  dags
    .command("delete")
    .description("delete a DAG with all its runs; its file stays, and as long as it stays the DAG comes back")
    .argument("<dag>")
    .action(async (dagId) => {
      await session.confirm(`Delete the DAG ${dagId} and all its runs?`);
      await session.client.delete(path`/dags/${dagId}`, { what: `cannot delete the DAG ${dagId}` });
      await session.printDone(
        { dag_id: dagId, deleted: true },
        `DAG ${dagId} deleted. While a file still exports it, it comes back.`,
      );
    });

  dags
    .command("test")
    .description("run one DAG here, in one process, without server or database, and print its progress")
    .argument("<file-or-dag>", "a DAG file, or the id of a DAG in the DAG folder")
    .option("--dags <folder>", "the DAG folder (TRADEWIND_DAGS, else dags)")
    .option("--dag <id>", "which DAG, when the file holds several")
    .option("--conf <json>", "the run's params: a JSON object, @file, or @- for standard input", parseConf)
    .option("--logical-date <date>", "the moment the run stands for", parseInstant)
    .option("--variable <key=value...>", "what ctx.variable reads")
    .option(
      "--connection <id=uri...>",
      "what ctx.connection reads: id=type://login:password@host:port/schema",
    )
    .option("--event <key=json...>", "what a trigger fires with, by its id, by task, or by task/step")
    .option(
      "--signal <key=json...>",
      "a signal from outside, when the run begins; key@10m=json: ten minutes later",
    )
    .option("--until <duration>", "close a run that does not end by itself after that time", parseDuration)
    .option("--skip-waits", "jump over retry delays and waits for a time")
    .action(async (what, { variable, connection, event, signal, ...options }) => {
      const { testDag } = await import("../dag-test/parent.ts");
      const events = parseEvents(parsePairs(event ?? [], "--event"));
      const variables = parsePairs(variable ?? [], "--variable");
      const connections = parseTestConnections(parsePairs(connection ?? [], "--connection"));
      const signals = (signal ?? []).map(parseTestSignal);
      session.exitCode = await testDag(session, {
        ...options,
        what,
        variables,
        connections,
        events,
        signals,
      });
    });

  return dags;
}

function parseEvents(texts: Readonly<Record<string, string>>): Record<string, unknown> {
  const events = Object.entries(texts).map(([key, text]) => [key, parseJson(text, `--event ${key}`)]);
  return Object.fromEntries(events);
}

function columns(session: Session): readonly Column<Dag>[] {
  return [
    { title: "DAG", value: (dag) => dag.dag_id },
    {
      title: "STATUS",
      value: status,
      paint: (dag, cell) => (status(dag) === "active" ? cell : session.terminal.paint("yellow", cell)),
    },
    { title: "SCHEDULE", value: (dag) => dag.timetable_summary ?? "-", flexible: true },
    { title: "NEXT RUN", value: (dag) => (dag.is_paused ? "-" : relativeTime(dag.next_dagrun_run_after)) },
    {
      title: "TAGS",
      value: (dag) => dag.tags.map((tag) => tag.name).join(", "),
      flexible: true,
      optional: true,
    },
    { title: "FILE", value: (dag) => dag.relative_fileloc ?? dag.fileloc, flexible: true, optional: true },
  ];
}

function status(dag: Dag): string {
  if (dag.is_stale) return "stale";
  if (dag.is_paused) return "paused";
  return dag.schedule_error ? "schedule error" : "active";
}

function scheduleOf({ timetable_summary: summary, timezone }: DagDetails): string {
  if (!summary) return "none";
  return timezone && timezone !== "UTC" ? `${summary} (${timezone})` : summary;
}

function dagFields(dag: DagDetails) {
  const version = dag.latest_dag_version;
  return [
    ["dag", dag.dag_id],
    ["version", version && `${version.version_number} (${relativeTime(version.created_at)})`],
    ["description", dag.description],
    ["status", dag.has_import_errors ? `${status(dag)}, and the newest file cannot be loaded` : status(dag)],
    ["paused because", dag.pause_reason],
    ["schedule", scheduleOf(dag)],
    ["jitter", dag.jitter && `up to ${dag.jitter.slice(2).toLowerCase()}`],
    ["schedule error", scheduleProblem(dag)],
    [
      "next run",
      dag.next_dagrun_run_after
        ? `${moment(dag.next_dagrun_run_after)} (${relativeTime(dag.next_dagrun_run_after)})`
        : null,
    ],
    ["file", dag.relative_fileloc ?? dag.fileloc],
    ["owner", dag.owners.join(", ")],
    ["tags", dag.tags.map((tag) => tag.name).join(", ")],
    [
      "limits",
      `${dag.max_active_runs ?? "any number of"} runs, ${dag.max_active_tasks} tasks of a run at once`,
    ],
    ["pauses", dag.max_consecutive_failed_dag_runs > 0 ? failureLimit(dag) : null],
    ["run retries", dag.run_retries && runRetries(dag.run_retries)],
    [
      "group retries",
      dag.group_retries
        .map(({ delay, group_id, retries }) => `${group_id}: ${retries}, ${span(delay)} apart`)
        .join("\n"),
    ],
    ["params", paramLines(dag.params_schema).join("\n")],
    ["loaded", relativeTime(dag.last_parsed_time)],
  ] as const;
}

function failureLimit({ max_consecutive_failed_dag_runs: most }: DagDetails): string {
  return `after ${most} failed scheduled run${most === 1 ? "" : "s in a row"}`;
}

function runRetries({ delay, from, retries }: NonNullable<DagDetails["run_retries"]>): string {
  return `${retries}, ${span(delay)} apart, from ${from === "start" ? "the start" : "what failed"}`;
}

/** What its own timetable failed with, and when it is asked again. */
function scheduleProblem({ schedule_error: error }: DagDetails): string | null {
  if (!error) return null;
  const again = error.next_try === null ? "" : `; next try ${relativeTime(error.next_try)}`;
  return `${error.message} [${error.code}] (${error.failures} in a row${again})`;
}

const TASK_COLUMNS: readonly Column<Task>[] = [
  { title: "TASK", value: (task) => task.task_id },
  { title: "OPERATOR", value: (task) => task.operator_name ?? "" },
  { title: "RULE", value: (task) => task.trigger_rule ?? "", optional: true },
  { title: "RETRIES", value: (task) => String(task.retries ?? 0), align: "right" },
  { title: "POOL", value: (task) => task.pool ?? "", optional: true },
  { title: "THEN", value: (task) => task.downstream_task_ids.join(", "), flexible: true },
];

/** A run that nobody starts looks like one that hangs. */
async function noteIfPaused(session: Session, dagId: string): Promise<void> {
  const dag = await session.client.get<Dag>(path`/dags/${dagId}`, { what: `cannot show the DAG ${dagId}` });
  if (!dag.is_paused) return;
  const words = `The DAG ${dagId} is paused: the run waits until it is unpaused`;
  session.note(`${session.terminal.paintNote("yellow", words)}: \`tradewind dags unpause ${dagId}\``);
}
