/** The tries of an instance, where it ran, and where its time went. */
import { Link } from "@tanstack/react-router";
import { $api } from "../../api/client.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { duration } from "../../time/format.ts";
import { Elapsed } from "../../time/time.tsx";
import { type Interval, readTimeline } from "../../timeline/timeline-data.ts";
import { cx } from "../../ui/class-names.ts";
import { CausedBy, useCauses } from "../signals/caused-by.tsx";
import { type Instance, medianMs, type TaskAddress, type Try, useUsual } from "./task-data.ts";

export function placeOf({ executor_job: job, hostname, pid }: Try): string {
  if (hostname === null && job === null) return "–";
  const name = job?.name ?? hostname ?? "";
  return `${name}${pid === null ? "" : `, pid ${pid}`}`;
}

export function TaskHeader({
  address,
  instance,
  tries,
  selected,
}: {
  readonly address: TaskAddress;
  readonly instance: Instance;
  readonly tries: readonly Try[];
  readonly selected: Try;
}) {
  const selectedTry = selected.try_number;
  const left = instance.max_tries + 1 - tries.length;
  if (tries.length === 0) return null;
  return (
    <div className="flex flex-wrap items-stretch gap-x-6 gap-y-3 px-4 pb-2">
      <Part title="Attempts">
        <div className="flex max-w-full flex-wrap gap-1.5">
          {tries.slice(-12).map((each) => (
            <Link
              key={each.try_number}
              to="."
              search={(before: Record<string, unknown>) => ({
                ...before,
                try: each.try_number,
                line: undefined,
              })}
              aria-current={each.try_number === selectedTry ? "true" : undefined}
              title={each.reason ?? lookOf(each.state).label}
              className={cx(
                "flex h-7 items-center gap-2 rounded-md border px-2 no-underline",
                each.try_number === selectedTry
                  ? "border-accent bg-accent-soft"
                  : "border-line bg-surface hover:bg-hover",
              )}
            >
              <StateGlyph state={each.state} size={14} />
              <span className="font-medium">Try {each.try_number}</span>
              <span className="text-muted">
                <Elapsed
                  from={each.start_date}
                  to={each.end_date ?? (each.start_date === null ? null : undefined)}
                />
              </span>
            </Link>
          ))}
          {left > 0 && instance.state === "success" && tries.length > 0 && (
            <span className="flex h-7 items-center rounded-md border border-dashed border-line px-2 text-faint">
              {left === 1 ? `Try ${tries.length + 1} not used` : `${left} tries not used`}
            </span>
          )}
        </div>
      </Part>
      <Part title="Ran on" className="max-sm:hidden">
        <span className="flex h-7 items-center font-mono">{placeOf(selected)}</span>
      </Part>
      <Signals address={address} tryNumber={selectedTry} />
      <TimeSpent address={address} attempt={selected} isOnly={tries.length === 1} />
    </div>
  );
}

function Signals({ address, tryNumber }: { readonly address: TaskAddress; readonly tryNumber: number }) {
  const { dagId, mapIndex, runId, taskId } = address;
  const causes = useCauses({ dagId, runId, task: { taskId, mapIndex, tryNumber } });
  if (causes.length === 0) return null;
  return (
    <Part title={causes.length === 1 ? "Signal" : "Signals"}>
      <span className="flex min-h-7 items-center">
        <CausedBy causes={causes} />
      </span>
    </Part>
  );
}

function Part({
  title,
  children,
  className,
}: {
  readonly title: React.ReactNode;
  readonly children: React.ReactNode;
  readonly className?: string;
}) {
  return (
    <section className={cx("flex min-w-0 flex-col gap-1", className)}>
      <h2 className="text-sm font-normal text-muted">{title}</h2>
      {children}
    </section>
  );
}

const SPENT = ["scheduled", "queued", "running", "deferred", "up_for_retry", "up_for_reschedule"] as const;

function TimeSpent({
  address,
  attempt,
  isOnly,
}: {
  readonly address: TaskAddress;
  readonly attempt: Try;
  readonly isOnly: boolean;
}) {
  const timeline = $api.useQuery("get", "/ui/dags/{dag_id}/runs/{dag_run_id}/timeline", {
    params: {
      path: { dag_id: address.dagId, dag_run_id: address.runId },
      query: { task_id: address.taskId, after: Math.max(-1, address.mapIndex - 1), limit: 1 },
    },
  });
  const usual = useUsual(address);
  if (timeline.data === undefined) return null;
  const own = readTimeline(timeline.data as unknown as Parameters<typeof readTimeline>[0])
    .tasks.flatMap(({ instances }) => instances)
    .find(({ mapIndex }) => mapIndex === address.mapIndex);
  const intervals = own?.intervals.filter(({ tryNumber }) => tryNumber === attempt.try_number) ?? [];
  if (intervals.length === 0) return null;
  const spent = SPENT.map((kind) => ({ kind, ms: timeIn(intervals, kind) })).filter(({ ms }) => ms > 0);
  const total = spent.reduce((sum, { ms }) => sum + ms, 0);
  const median = usual.data === undefined ? null : medianMs(usual.data.task_instances);
  const took = attempt.duration === null ? null : attempt.duration * 1_000;
  return (
    <Part
      title={isOnly ? "Where the time went" : `Where the time of try ${attempt.try_number} went`}
      className="min-w-64 flex-1"
    >
      <div aria-hidden className="flex h-2 overflow-hidden rounded-full">
        {spent.map(({ kind, ms }) => (
          <span
            key={kind}
            style={{
              width: `${(100 * ms) / total}%`,
              minWidth: 2,
              background: `var(${lookOf(kind).color})`,
            }}
          />
        ))}
      </div>
      <p className="flex flex-wrap gap-x-4">
        {spent.map(({ kind, ms }) => (
          <span key={kind} className="inline-flex items-center gap-1.5 whitespace-nowrap">
            <span
              aria-hidden
              className="size-2 rounded-sm"
              style={{ background: `var(${lookOf(kind).color})` }}
            />
            {lookOf(kind).label} <b className="font-medium tabular-nums">{duration(ms)}</b>
          </span>
        ))}
        {median !== null && (
          <span className="ml-auto text-muted">
            usual <b className="font-medium text-text tabular-nums">{duration(median)}</b>
            {took !== null && took > 1.5 * median && took - median > 1_000 && (
              <span className="text-warn"> +{duration(took - median)}</span>
            )}
          </span>
        )}
      </p>
    </Part>
  );
}

function timeIn(intervals: readonly Interval[], wanted: string): number {
  return intervals.reduce((sum, { end, kind, start }) => (kind === wanted ? sum + end - start : sum), 0);
}
