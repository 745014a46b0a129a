import type { Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import type { Signal } from "../../client/signal-stream.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { type Column, renderTable } from "../../output/table.ts";
import { moment, span } from "../../output/when.ts";
import type { Session } from "../../session.ts";

interface Effect {
  readonly kind: string;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string | null;
  readonly map_index: number;
  readonly try_number: number;
  readonly state: string | null;
  readonly latency_seconds: number;
}

interface Chain {
  readonly signal: Signal;
  readonly source: {
    readonly kind: string;
    readonly name: string;
    readonly dag_id: string | null;
    readonly dag_run_id: string | null;
    readonly task_id: string | null;
  };
  readonly caused_by: readonly { readonly version: number; readonly key: string | null }[];
  readonly effects: readonly Effect[];
  readonly more: boolean;
  readonly recipients: readonly {
    readonly name: string;
    readonly state: string;
    readonly error: string | null;
  }[];
}

export function addShow(signals: Command, session: Session): void {
  signals
    .command("show")
    .description("show a signal, what it is from, and what it has caused")
    .addHelpText("after", examples("tradewind signals show 4711"))
    .argument("<version>", "its version", wholeNumber(1))
    .action(async (version) => {
      const chain = await session.client.get<Chain>(path`/signals/${version}/effects`, {
        what: `cannot show the signal ${version}`,
      });
      const { caused_by: causes, effects, more, recipients, signal, source } = chain;
      await session.printObject(chain, [
        ["signal", signal.namespace === "default" ? signal.key : `${signal.namespace}:${signal.key}`],
        ["version", String(signal.version)],
        ["sent", moment(signal.time)],
        ["sender", signal.sender],
        ["from", placeOf(source)],
        [
          "caused by",
          causes.map(({ key, version: cause }) => `${key ?? "signal"} ${cause}`).join(", ") || null,
        ],
        ["value", JSON.stringify(signal.value)],
        ["listeners", recipients.map(({ name, state }) => `${name} (${state})`).join(", ") || null],
      ]);
      if (session.format !== "table") return;
      session.terminal.data("");
      if (effects.length === 0) return session.note("No effect: no run and no task has reacted to it.");
      for (const line of renderTable(effects, COLUMNS, session.terminal.width)) session.terminal.data(line);
      if (more) session.note(`the first ${effects.length} effects`);
    });
}

const COLUMNS: readonly Column<Effect>[] = [
  { title: "AFTER", value: ({ latency_seconds: seconds }) => span(seconds), align: "right" },
  {
    title: "EFFECT",
    value: ({ kind, task_id }) => `${VERBS[kind] ?? kind} ${task_id === null ? "run" : "task"}`,
  },
  { title: "DAG", value: ({ dag_id }) => dag_id },
  { title: "RUN", value: ({ dag_run_id }) => dag_run_id, flexible: true },
  {
    title: "TASK",
    value: ({ map_index, task_id }) =>
      task_id === null ? "-" : `${task_id}${map_index >= 0 ? `[${map_index}]` : ""}`,
  },
  { title: "TRY", value: ({ try_number }) => (try_number > 0 ? String(try_number) : "-"), align: "right" },
  { title: "STATE", value: ({ state }) => state ?? "-" },
];

const VERBS: Readonly<Record<string, string>> = {
  create: "created",
  close: "closed",
  start: "started",
  restart: "restarted",
  stop: "stopped",
  resume: "resumed",
};

function placeOf({ dag_id, dag_run_id, kind, name, task_id }: Chain["source"]): string {
  if (dag_id === null) return `${kind} ${name}`;
  return [dag_id, dag_run_id, task_id].filter((part) => part !== null).join(" / ");
}
