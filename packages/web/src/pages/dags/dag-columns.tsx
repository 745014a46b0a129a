/** The columns of the table of DAGs; each cell has two lines. */
import { Link } from "@tanstack/react-router";
import { Play } from "lucide-react";
import type { ReactNode } from "react";
import type { components } from "../../api/schema.gen.ts";
import { usePreferences } from "../../app/preferences.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { useNow } from "../../time/clock.ts";
import { clock, duration, exact, monthDay, relative } from "../../time/format.ts";
import { Ago, Elapsed, epoch } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { cx } from "../../ui/class-names.ts";
import type { Column } from "../../ui/data-table.tsx";
import { Switch } from "../../ui/switch.tsx";
import { type BarRun, usualOf } from "./bar-shapes.ts";
import { SparkBars } from "./spark-bars.tsx";

export interface DagRow {
  readonly dag: components["schemas"]["UiDag"];
  readonly runs: readonly BarRun[];
}

export interface DagActions {
  readonly onPause: (dagId: string, isPaused: boolean) => void;
  readonly onTrigger: (dagId: string) => void;
}

export function dagColumns({ onPause, onTrigger }: DagActions): Column<DagRow>[] {
  return [
    { id: "dag", header: "DAG", sort: "dag_id", cell: (row: DagRow) => <NameCell {...row} /> },
    {
      id: "owner",
      header: "Owner, tags",
      width: "120px",
      from: "2xl",
      cell: (row: DagRow) => <OwnerCell {...row} />,
    },
    {
      id: "schedule",
      header: "Schedule",
      width: "190px",
      from: "lg",
      cell: (row: DagRow) => <ScheduleCell {...row} />,
    },
    {
      ...{ id: "bars", header: "Last 30 runs", width: "169px", from: "md" },
      cell: ({ dag, runs }) => (
        <div className={cx(dag.is_paused && "opacity-50")}>
          <SparkBars dagId={dag.dag_id} runs={runs} />
        </div>
      ),
    },
    { id: "run", header: "Last run", width: "140px", cell: (row: DagRow) => <LastRunCell {...row} /> },
    {
      ...{ id: "started", header: "Started", width: "122px", sort: "last_run", numeric: true, from: "xl" },
      cell: (row: DagRow) => <StartedCell {...row} />,
    },
    {
      id: "took",
      header: "Took, usual",
      width: "96px",
      numeric: true,
      from: "xl",
      cell: (row: DagRow) => <TookCell {...row} />,
    },
    {
      ...{ id: "next", header: "Next run", width: "116px", sort: "next_run", numeric: true, from: "md" },
      cell: (row: DagRow) => <NextCell {...row} />,
    },
    {
      id: "on",
      header: "On",
      width: "64px",
      numeric: true,
      cell: ({ dag }) => (
        <span className="relative inline-flex items-center">
          <Button
            tabIndex={-1}
            onClick={() => onTrigger(dag.dag_id)}
            className="absolute right-9 !h-6 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 focus-visible:opacity-100 max-md:hidden"
          >
            <Play aria-hidden />
            Trigger
          </Button>
          <Switch
            label={`Schedule of ${dag.dag_id}`}
            checked={!dag.is_paused}
            onChange={(on) => onPause(dag.dag_id, !on)}
          />
        </span>
      ),
    },
  ];
}

function Two({ first, second }: { readonly first: ReactNode; readonly second?: ReactNode }) {
  return (
    <div className="min-w-0 leading-4">
      <div className="truncate">{first}</div>
      <div className="truncate text-sm leading-4 text-muted">{second ?? "\u00a0"}</div>
    </div>
  );
}

function NameCell({ dag }: DagRow) {
  return (
    <Two
      first={
        <span className="flex min-w-0 items-center gap-1.5">
          <Link
            to={`/dags/${encodeURIComponent(dag.dag_id)}` as "/"}
            className={cx("truncate font-medium hover:underline", dag.is_paused && "text-muted")}
          >
            {dag.dag_id}
          </Link>
          {dag.late !== null && <Mark label="Late" className="text-warn" />}
          {dag.import_error !== null && <Mark label="Import error" className="text-danger" />}
        </span>
      }
      second={
        dag.import_error === null ? (
          dag.description
        ) : (
          <code className="text-danger" title={dag.import_error}>
            {dag.import_error}
          </code>
        )
      }
    />
  );
}

function Mark({ label, className }: { readonly label: string; readonly className: string }) {
  return <span className={cx("shrink-0 text-sm font-medium", className)}>{label}</span>;
}

function OwnerCell({ dag: { owner, tags } }: DagRow) {
  return <Two first={owner ?? <span className="text-faint">–</span>} second={tags.join(", ")} />;
}

function ScheduleCell({ dag: { schedule, schedule_error } }: DagRow) {
  const zone = `, ${schedule.zone}`;
  const text = schedule.text.endsWith(zone) ? schedule.text.slice(0, -zone.length) : schedule.text;
  return (
    <Two
      first={<span title={[schedule.text, schedule.summary].filter(Boolean).join("\n")}>{text}</span>}
      second={
        schedule_error !== null ? (
          <span className="text-danger" title={schedule_error.message}>
            {schedule_error.message}
          </span>
        ) : schedule.is_periodic ? (
          schedule.zone
        ) : undefined
      }
    />
  );
}

function LastRunCell({ dag, runs }: DagRow) {
  const run = runs.at(-1);
  const last = dag.last_run;
  if (run === undefined || last === null)
    return <Two first={<span className="text-faint">Never run</span>} />;
  const isWaiting =
    run.state === "running" && last.waiting > 0 && last.waiting === last.tasks - last.finished;
  const state = isWaiting ? "deferred" : run.state;
  const failed = last.failed_task;
  const progress =
    run.state === "success"
      ? `${last.tasks} ${last.tasks === 1 ? "task" : "tasks"}`
      : isWaiting
        ? `${last.waiting} waiting`
        : `${last.finished} of ${last.tasks} tasks`;
  return (
    <Two
      first={
        <span className="flex items-center gap-1.5">
          <StateGlyph state={state} size={14} />
          <Link
            to={`/dags/${encodeURIComponent(dag.dag_id)}/runs/${encodeURIComponent(run.runId)}` as "/"}
            preload={false}
            className={cx("truncate hover:underline", run.state === "failed" && "font-medium text-danger")}
          >
            {isWaiting ? "Waiting" : lookOf(state).label}
          </Link>
        </span>
      }
      second={
        <span className="pl-5" title={last.failed_reason ?? undefined}>
          {failed ?? progress}
        </span>
      }
    />
  );
}

function StartedCell({ runs }: DagRow) {
  const { zone } = usePreferences();
  const run = runs.at(-1);
  const at = run?.started ?? run?.runAfter ?? null;
  if (at === null) return <Two first={<span className="text-faint">–</span>} />;
  return <Two first={<Ago at={at} />} second={clockOrDay(at, zone)} />;
}

/** The clock for a time of today, the day otherwise. */
function clockOrDay(at: number, zone: string): string {
  const isToday = Math.abs(Date.now() - at) < 43_200_000;
  const time = clock(at, zone).slice(0, 5);
  return isToday ? time : `${monthDay(at, zone)} ${time}`;
}

function TookCell({ runs }: DagRow) {
  const run = runs.at(-1);
  const usual = usualOf(runs);
  const isLong =
    run?.started != null && usual !== null && (run.ended ?? Date.now()) - run.started > usual * 1.5 + 5_000;
  return (
    <Two
      first={
        <span className={cx(isLong && "font-medium text-warn")}>
          <Elapsed from={run?.started} to={run?.ended} />
        </span>
      }
      second={usual === null ? undefined : `~ ${duration(usual)}`}
    />
  );
}

function NextCell({ dag }: DagRow) {
  if (dag.is_paused)
    return <Two first={<span className="text-muted">Paused</span>} second={dag.pause_reason ?? undefined} />;
  const at = epoch(dag.next_run_after);
  if (dag.late !== null)
    return (
      <Two
        first={<Lateness since={epoch(dag.late.since)!} because={dag.late.because} />}
        second={at === null ? undefined : <Then at={at} />}
      />
    );
  if (at === null) return <Two first={<span className="text-faint">–</span>} />;
  return <Two first={<Ago at={at} />} second={<Then at={at} />} />;
}

function Then({ at }: { readonly at: number }) {
  const { zone } = usePreferences();
  return <>{clockOrDay(at, zone)}</>;
}

const LATE = {
  not_created: "A run is due and not created",
  not_started: "A run is due and has not started",
  deadline: "A run has missed its deadline",
} as const;

function Lateness({ since, because }: { readonly since: number; readonly because: keyof typeof LATE }) {
  const now = useNow();
  const { zone } = usePreferences();
  return (
    <span className="font-medium text-warn" title={`${LATE[because]}, since ${exact(since, zone)}`}>
      {relative(since, now).replace(" ago", "")} late
    </span>
  );
}
