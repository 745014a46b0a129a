/** The facts of a run: what started it, how long it takes against usual, how far it is, and where the time went. */
import { Link } from "@tanstack/react-router";
import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { useNow } from "../../time/clock.ts";
import { count, duration } from "../../time/format.ts";
import { Elapsed, Exact } from "../../time/time.tsx";
import { type Timeline, type TimeUses, USES } from "../../timeline/timeline-data.ts";
import { cx } from "../../ui/class-names.ts";
import { CausedBy, useCauses } from "../signals/caused-by.tsx";
import { KIND_WORDS, type Run } from "./run-data.ts";
import { RunFailure } from "./run-failure.tsx";

export function RunHeader({ run, timeline }: { readonly run: Run; readonly timeline: Timeline | undefined }) {
  return (
    <div className="flex flex-col gap-2.5 px-4 pb-2.5">
      <div className="flex flex-wrap gap-x-8 gap-y-2">
        {run.logical_date !== null && (
          <Part name="Logical date" className="max-sm:hidden">
            <Exact at={run.logical_date} />
          </Part>
        )}
        <Part name="Triggered by">
          {KIND_WORDS[run.run_kind]}
          {run.triggering_user_name !== null && (
            <span className="text-muted"> {run.triggering_user_name}</span>
          )}
        </Part>
        <Part name="Started">
          <Exact at={run.start_date} fallback="not yet" />
        </Part>
        <Part name={run.end_date === null ? "Elapsed, against usual" : "Took, against usual"}>
          <Took run={run} timeline={timeline} />
        </Part>
        <Part name="Progress">
          <Progress run={run} />
        </Part>
        <Part name="Version" className="max-sm:hidden">
          <Link to="/dags/$dagId" params={{ dagId: run.dag_id }} search={{ tab: "code" }} className="link">
            v{run.dag_versions[0]?.version_number}
          </Link>
        </Part>
        <Signals run={run} />
        {run.parent !== null && (
          <Part name={run.parent.is_sub_dag ? "Part of" : "Started by"}>
            <Link
              to="/dags/$dagId/runs/$runId/tasks/$taskId"
              params={{
                dagId: run.parent.dag_id,
                runId: run.parent.dag_run_id,
                taskId: run.parent.task_id,
              }}
              search={run.parent.map_index >= 0 ? { map: run.parent.map_index } : {}}
              className="link"
            >
              {run.parent.dag_id} / {run.parent.task_id}
            </Link>
          </Part>
        )}
      </div>
      {timeline?.time && <TimeSpent time={timeline.time} before={timeline.compared?.time ?? null} />}
      {run.end_reason !== null && run.state === "failed" && <RunFailure run={run} />}
      {run.held_by !== undefined && run.held_by.length > 0 && (
        <ul className="rounded-md bg-warn-soft px-3 py-1.5">
          {run.held_by.map(({ code, message }) => (
            <li key={code}>
              {message} <code className="text-sm text-muted">{code}</code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Signals({ run }: { readonly run: Run }) {
  const causes = useCauses({ dagId: run.dag_id, runId: run.dag_run_id });
  if (causes.length === 0) return null;
  return (
    <Part name={causes.length === 1 ? "Signal" : "Signals"}>
      <CausedBy causes={causes} />
    </Part>
  );
}

function Part({
  name,
  className,
  children,
}: {
  readonly name: string;
  readonly className?: string;
  readonly children: React.ReactNode;
}) {
  return (
    <div className={cx("flex flex-col", className)}>
      <span className="text-sm text-muted">{name}</span>
      <span className="whitespace-nowrap">{children}</span>
    </div>
  );
}

function Took({ run, timeline }: { readonly run: Run; readonly timeline: Timeline | undefined }) {
  const usual = timeline?.usual?.p50 ?? null;
  const took =
    run.start_date === null || run.end_date === null
      ? null
      : Date.parse(run.end_date) - Date.parse(run.start_date);
  const more = usual === null || took === null ? 0 : took - usual;
  const end = timeline?.expectedEnd;
  return (
    <>
      <b className="font-semibold">
        <Elapsed from={run.start_date} to={run.end_date} />
      </b>
      {usual !== null && <span className="text-muted"> / {duration(usual)}</span>}
      {usual !== null && Math.abs(more) > Math.max(500, usual * 0.1) && (
        <span className={more > 0 ? "text-warn" : "text-muted"}>
          {" "}
          {more > 0 ? "+" : "−"}
          {duration(Math.abs(more))}
        </span>
      )}
      {end && timeline.run.started !== null && (
        <ExpectedEnd started={timeline.run.started} end={timeline.origin + end.usual} unknown={end.unknown} />
      )}
    </>
  );
}

/** Nothing once that time has passed. */
function ExpectedEnd({
  started,
  end,
  unknown,
}: {
  readonly started: number;
  readonly end: number;
  readonly unknown: number;
}) {
  const now = useNow();
  if (now >= end) return null;
  return (
    <span
      className="text-muted"
      title={
        unknown > 0 ? `${unknown} ${unknown === 1 ? "task has" : "tasks have"} never succeeded` : undefined
      }
    >
      {" "}
      · ends after {unknown > 0 ? "at least " : "about "}
      {duration(end - started)}
    </span>
  );
}

const ORDER = [
  "success",
  "skipped",
  "failed",
  "upstream_failed",
  "running",
  "deferred",
  "up_for_retry",
  "queued",
  "scheduled",
];

function Progress({ run: { progress } }: { readonly run: Run }) {
  if (progress === undefined || progress.total === 0) return <span className="text-faint">–</span>;
  const states = Object.entries(progress.by_state)
    .filter(([, number]) => number > 0)
    .sort((a, b) => rank(a[0]) - rank(b[0]));
  const active = states.filter(
    ([state]) => state !== "success" && state !== "skipped" && state !== "pending",
  );
  return (
    <span className="flex items-center gap-2.5">
      <span aria-hidden className="flex h-1.5 w-24 overflow-hidden rounded-full bg-line">
        {states
          .filter(([state]) => state !== "pending")
          .map(([state, number]) => (
            <span
              key={state}
              style={{
                width: `${(100 * number) / progress.total}%`,
                background: `var(${lookOf(state).color})`,
              }}
            />
          ))}
      </span>
      <span>
        {count(progress.finished)} of {count(progress.total)}
      </span>
      {active.slice(0, 4).map(([state, number]) => (
        <span key={state} className="inline-flex items-center gap-1 text-muted">
          <StateGlyph state={state} size={13} title={lookOf(state).label} />
          {count(number)}
        </span>
      ))}
    </span>
  );
}

function rank(state: string): number {
  const found = ORDER.indexOf(state);
  return found < 0 ? ORDER.length : found;
}

function TimeSpent({ time, before }: { readonly time: TimeUses; readonly before: TimeUses | null }) {
  const total = USES.reduce((sum, { use }) => sum + time[use], 0);
  if (total === 0) return null;
  return (
    <div className="flex flex-wrap items-center gap-x-5 gap-y-1">
      <span className="text-sm text-muted">Where the time went</span>
      <span aria-hidden className="flex h-2 min-w-40 flex-1 overflow-hidden rounded-full bg-line">
        {USES.filter(({ use }) => time[use] > 0).map(({ color, use }) => (
          <span
            key={use}
            style={{ width: `${(100 * time[use]) / total}%`, minWidth: 2, background: `var(${color})` }}
          />
        ))}
      </span>
      {USES.map(({ color, label, use }) => {
        const more = before === null ? 0 : time[use] - before[use];
        return (
          <span key={use} className="inline-flex items-center gap-1.5 whitespace-nowrap">
            <span aria-hidden className="size-2 rounded-sm" style={{ background: `var(${color})` }} />
            {label} <b className="font-medium tabular-nums">{duration(time[use])}</b>
            <span className="text-muted tabular-nums">{share(time[use] / total)}</span>
            {before !== null && Math.abs(more) > Math.max(100, total * 0.02) && (
              <span className={cx("tabular-nums", more > 0 ? "text-warn" : "text-muted")}>
                {more > 0 ? "+" : "−"}
                {duration(Math.abs(more))}
              </span>
            )}
          </span>
        );
      })}
    </div>
  );
}

function share(part: number): string {
  const percent = 100 * part;
  return `${percent >= 1 || percent === 0 ? Math.round(percent) : percent.toFixed(1)} %`;
}
