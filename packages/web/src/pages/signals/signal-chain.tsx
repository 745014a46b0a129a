/** Cause → effect of one signal: what it is from, and what it started, stopped or resumed, with latencies. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { components } from "../../api/schema.gen.ts";
import { runPath, taskPath } from "../../app/paths.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { count, duration } from "../../time/format.ts";
import { epoch } from "../../time/time.tsx";
import { SignalLink } from "./signal-link.tsx";

type Chain = components["schemas"]["SignalEffects"];
type Effect = components["schemas"]["SignalEffect"];
type Source = Chain["source"];

export function SignalChain({ chain }: { readonly chain: Chain }) {
  const { caused_by: causes, effects, more, signal, source } = chain;
  const rows = effects.map((effect) => <EffectRow key={keyOf(effect)} effect={effect} />);
  return (
    <section className="flex flex-col gap-1.5">
      <h3 className="flex items-baseline justify-between gap-2">
        Cause → effect <span className="text-sm font-normal text-muted">{summary(effects, more)}</span>
      </h3>
      <ol>
        {causes.map((cause) => (
          <Step
            key={`${cause.version} ${cause.kind}`}
            depth={0}
            mark={<Dot />}
            title={<SignalLink signal={cause} />}
          >
            {cause.kind === "create" ? "created the run" : `${VERBS[cause.kind]} the task`} that sent this
            signal
          </Step>
        ))}
        <Step depth={causes.length > 0 ? 1 : 0} mark={<Dot />} title={<SourceName source={source} />}>
          {SENT[source.kind]}
        </Step>
        <Step
          depth={causes.length > 0 ? 2 : 1}
          mark={<Dot isThis />}
          title={<span className="font-mono font-semibold break-all">{signal.key}</span>}
        >
          this signal, version {signal.version}
        </Step>
        {rows.map((row, index) => (
          <li key={keyOf(effects[index]!)} style={{ paddingLeft: `${(causes.length > 0 ? 3 : 2) * 14}px` }}>
            {row}
          </li>
        ))}
      </ol>
      {effects.length === 0 && (
        <p className="text-muted">
          Nothing has happened because of it: no run was created, and no task was started, stopped or resumed.
        </p>
      )}
      {more && <p className="text-muted">Only the first {count(effects.length)} effects are shown.</p>}
    </section>
  );
}

export const VERBS = {
  create: "created",
  close: "closed",
  start: "started",
  restart: "restarted",
  stop: "stopped",
  resume: "resumed",
} as const;

const SENT: Readonly<Record<Source["kind"], string>> = {
  task: "the task that it is from",
  run: "the run whose state changed",
  trigger: "the trigger that fired",
  user: "the person who acted",
  webhook: "the webhook that was called",
  client: "the sender",
  engine: "Tradewind itself",
};

function SourceName({
  source: { dag_id: dag, dag_run_id: run, kind, name, task_id: task },
}: {
  readonly source: Source;
}) {
  if (dag === null || run === null) return <span className="break-all">{name || kind}</span>;
  return (
    <Link to={task === null ? runPath(dag, run) : taskPath(dag, run, task)} className="link break-all">
      {dag} › {task ?? run}
    </Link>
  );
}

function EffectRow({ effect }: { readonly effect: Effect }) {
  const {
    dag_id: dag,
    dag_run_id: run,
    kind,
    latency_seconds: latency,
    map_index: map,
    state,
    task_id: task,
  } = effect;
  const name = task === null ? dag : `${dag} › ${task}${map >= 0 ? `[${map}]` : ""}`;
  return (
    <Step
      depth={0}
      mark={<StateGlyph state={state} title={lookOf(state).label} />}
      side={`+${duration(latency * 1_000)}`}
      title={
        <>
          {task === null ? "Run" : "Task"}{" "}
          <Link
            to={task === null ? runPath(dag, run) : taskPath(dag, run, task)}
            search={(map >= 0 ? { map } : {}) as never}
            className="link break-all"
          >
            {name}
          </Link>{" "}
          {VERBS[kind]}
        </>
      }
    >
      {details(effect)}
    </Step>
  );
}

function details({
  at,
  dag_run_id: run,
  kind,
  started_at: started,
  state,
  task_id,
  try_number,
  wait,
  waited_since,
}: Effect): string {
  const moment = epoch(at)!;
  const [since, begun] = [epoch(waited_since), epoch(started)];
  const verb = kind === "resume" ? "continued" : "began";
  return [
    run,
    task_id !== null && kind !== "stop" && try_number > 1 && `try ${try_number}`,
    wait !== null && `wait "${wait}"`,
    since !== null && `after ${duration(moment - since)}`,
    begun !== null && begun >= moment && `${verb} ${duration(begun - moment)} later`,
    state !== null && `now ${lookOf(state).label.toLowerCase()}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function Step({
  depth,
  mark,
  title,
  side,
  children,
}: {
  readonly depth: number;
  readonly mark: ReactNode;
  readonly title: ReactNode;
  readonly side?: string;
  readonly children: ReactNode;
}) {
  const row = (
    <div className="flex gap-2 py-1">
      <span className="flex h-5 w-4 shrink-0 items-center justify-center">{mark}</span>
      <div className="min-w-0 flex-1">
        <div>{title}</div>
        <div className="text-sm break-words text-muted">{children}</div>
      </div>
      {side !== undefined && <span className="whitespace-nowrap text-muted tabular-nums">{side}</span>}
    </div>
  );
  return side === undefined ? <li style={{ paddingLeft: `${depth * 14}px` }}>{row}</li> : row;
}

function Dot({ isThis = false }: { readonly isThis?: boolean }) {
  return (
    <span
      aria-hidden
      className={`size-2.5 rounded-full border-2 ${isThis ? "border-accent bg-accent" : "border-line-strong"}`}
    />
  );
}

function keyOf({ dag_id, dag_run_id, kind, map_index, task_id, try_number }: Effect): string {
  return JSON.stringify([dag_id, dag_run_id, kind, map_index, task_id, try_number]);
}

function summary(effects: readonly Effect[], more: boolean): string {
  const runs = effects.filter(({ task_id }) => task_id === null).length;
  const tasks = effects.length - runs;
  const plus = more ? "+" : "";
  return [
    runs > 0 && `${count(runs)}${plus} ${runs === 1 ? "run" : "runs"}`,
    tasks > 0 && `${count(tasks)}${plus} ${tasks === 1 ? "task" : "tasks"}`,
  ]
    .filter(Boolean)
    .join(", ");
}
