/** `signals conditions`: the rules of signal-driven runs, and their progress. */
import type { Command } from "@commander-js/extra-typings";
import { type Listed, path } from "../../client/client.ts";
import { findRunId, RUN_ARGUMENT } from "../../client/find-run.ts";
import { requireNamed } from "../../client/named-filter.ts";
import type { RunConditions, SignalRule } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";

/** A rule, a tick, or a command for a task. */
interface Line {
  readonly run: RunConditions;
  readonly task: string;
  readonly action: string;
  readonly condition: string;
  readonly missing: string;
  readonly fired: string;
  readonly state: string;
}

export function addConditions(signals: Command, session: Session): void {
  signals
    .command("conditions")
    .description("show the rules of signal-driven runs: signals received and signals missing")
    .addHelpText(
      "after",
      examples(
        "tradewind signals conditions online_model",
        "tradewind signals conditions online_model @latest",
      ),
    )
    .argument("[dag]", "only runs of this DAG")
    .argument("[run]", RUN_ARGUMENT)
    .option("--limit <n>", "maximum number of runs; 0 = no limit", wholeNumber(0), 20)
    .action(async (dag, run, { limit }) => {
      const listed = await read(session, { dag, run }, limit);
      await requireNamed(session.client, `cannot read the conditions of ${dag}`, listed, { dag });
      if (session.format !== "table") return session.printList(listed, [], "");
      const lines = listed.items.flatMap(linesOf);
      const empty =
        listed.items.length === 0
          ? `No run${dag === undefined ? "" : ` of ${dag}`} is signal-driven.`
          : "This run is not signal-driven.";
      await session.printList({ items: lines, total: lines.length }, columns(session), empty);
      if (listed.items.length < listed.total)
        session.note(`${listed.items.length} of ${listed.total} runs shown; --limit 0 shows all.`);
      // The same transactions block the signals of every run.
      const held = new Set(listed.items.flatMap(({ held_by }) => held_by.map(({ message }) => message)));
      for (const message of held) session.note(message);
    });
}

async function read(
  { client }: Session,
  { dag, run }: { readonly dag: string | undefined; readonly run: string | undefined },
  limit: number,
): Promise<Listed<RunConditions>> {
  if (dag === undefined || run === undefined) {
    const query = { dag_id: dag };
    return client.list({
      path: "/signals/conditions",
      key: "runs",
      what: "cannot read the conditions",
      query,
      limit,
    });
  }
  const runId = await findRunId(client, dag, run);
  const found = await client.get<RunConditions>(path`/dags/${dag}/dagRuns/${runId}/conditions`, {
    what: `cannot read the conditions of the run ${runId} of ${dag}`,
  });
  return { items: [found], total: 1 };
}

/** Pending commands come before rules. */
function linesOf(run: RunConditions): Line[] {
  const none = { run, missing: "", fired: "" };
  return [
    ...(run.closed === null
      ? []
      : [{ ...none, task: "", action: "", condition: "", state: `closed by ${run.closed}` }]),
    ...run.tasks.flatMap(({ pending_starts, stopping, task_id: task }) => [
      ...(stopping === null
        ? []
        : [{ ...none, task, action: "stop", condition: "", state: `being stopped by ${stopping}` }]),
      ...(pending_starts === 0
        ? []
        : [{ ...none, task, action: "start", condition: "", state: `${pending_starts} pending` }]),
    ]),
    ...run.rules.map((rule) => ruleLine(run, rule)),
    ...run.tasks.flatMap((task) => (task.reacts_to.length === 0 ? [] : [reactionLine(run, task)])),
    ...run.tasks.flatMap(({ next_tick, task_id: task }) =>
      next_tick === null
        ? []
        : [
            {
              ...none,
              task,
              action: "start",
              condition: "every",
              missing: relativeTime(next_tick),
              state: "armed",
            },
          ],
    ),
  ];
}

/** A task with a signal handler, and the handler's latest error. */
function reactionLine(run: RunConditions, task: RunConditions["tasks"][number]): Line {
  const { on_signal_failure, reacts_to, task_id } = task;
  const isOpen = run.closed === null;
  return {
    run,
    task: task_id,
    action: "onSignal",
    condition: reacts_to.join(", "),
    missing: "",
    fired: "",
    state:
      on_signal_failure === null
        ? isOpen
          ? "armed"
          : "done"
        : `failed ${on_signal_failure.attempts}x on ${on_signal_failure.key} (version ${on_signal_failure.version}), next try ${on_signal_failure.again_at === null ? "soon" : relativeTime(on_signal_failure.again_at)}`,
  };
}

function ruleLine(run: RunConditions, rule: SignalRule): Line {
  return {
    run,
    task: rule.task_id ?? "(the run)",
    action: rule.action,
    condition: `${rule.condition}${rule.once && rule.task_id !== null ? ", once" : ""}`,
    missing: rule.is_armed ? rule.missing : "",
    fired: rule.fired === null ? "" : String(rule.fired),
    state: rule.is_armed ? "armed" : "done",
  };
}

function columns({ terminal }: Session): readonly Column<Line>[] {
  return [
    { title: "DAG", value: ({ run }) => run.dag_id, heading: true },
    { title: "RUN", value: ({ run }) => run.dag_run_id, heading: true },
    { title: "TASK", value: ({ task }) => task },
    { title: "ACTION", value: ({ action }) => action },
    { title: "CONDITION", value: ({ condition }) => condition, flexible: true },
    { title: "MISSING", value: ({ missing }) => missing, flexible: true },
    { title: "FIRED", value: ({ fired }) => fired, align: "right" },
    {
      title: "STATE",
      value: ({ state }) => state,
      flexible: true,
      paint: ({ state }, cell) =>
        state === "armed" || state === "done" ? cell : terminal.paint("yellow", cell),
    },
  ];
}
