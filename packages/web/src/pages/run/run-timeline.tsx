/** The timeline tab of a run: what is drawn, in which order, and the tasks that decided the end. */
import { useNavigate } from "@tanstack/react-router";
import { Route } from "lucide-react";
import { useMemo, useState } from "react";
import { textOf, useSearchState } from "../../app/search.ts";
import { duration } from "../../time/format.ts";
import type { Timeline } from "../../timeline/timeline-data.ts";
import { timelineRows } from "../../timeline/timeline-rows.ts";
import { TimelineView } from "../../timeline/timeline-view.tsx";
import { Button } from "../../ui/button.tsx";
import { cx } from "../../ui/class-names.ts";
import { SearchBox } from "../../ui/field.tsx";
import { Empty } from "../../ui/panels.tsx";
import type { RunAddress } from "./run-data.ts";

export function RunTimeline({
  address,
  timeline,
}: {
  readonly address: RunAddress;
  readonly timeline: Timeline;
}) {
  const [search, setSearch] = useSearchState();
  const navigate = useNavigate();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const filter = textOf(search, "q") ?? "";
  const order = textOf(search, "order") === "start" ? "start" : "graph";
  const showPath = textOf(search, "path") !== "0";
  const compares = textOf(search, "compare") !== undefined;
  const rows = useMemo(
    () => timelineRows(timeline, { closed, order, filter }),
    [timeline, closed, order, filter],
  );
  const open = (taskId: string) =>
    void navigate({
      to: "/dags/$dagId/runs/$runId/tasks/$taskId",
      params: { dagId: address.dagId, runId: address.runId, taskId },
      search: {},
    });
  const toggle = (group: string) => {
    const next = new Set(closed);
    if (!next.delete(group)) next.add(group);
    setClosed(next);
  };
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col [--names:360px] max-md:[--names:170px]">
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-1.5">
        <SearchBox
          label="Find a task"
          value={filter}
          onChange={(q) => setSearch({ q })}
          className="w-44 max-sm:w-full"
        />
        <Choice on={showPath} onChange={(on) => setSearch({ path: on ? undefined : "0" })}>
          <Route aria-hidden /> Critical path
        </Choice>
        <Choice on={order === "start"} onChange={(on) => setSearch({ order: on ? "start" : undefined })}>
          By start
        </Choice>
        <Choice on={compares} onChange={(on) => setSearch({ compare: on ? "1" : undefined })}>
          Compare<span className="max-sm:sr-only"> with the previous run</span>
        </Choice>
        {showPath && timeline.path.length > 0 && (
          <p className="min-w-0 flex-1 truncate text-muted max-lg:hidden">
            <b className="font-medium text-text">{pathText(timeline)}</b> {pathNames(timeline).join(" → ")}
          </p>
        )}
      </div>
      {compares && timeline.compared === null && (
        <p className="border-b border-line px-4 py-1 text-muted">There is no earlier run that has ended.</p>
      )}
      {timeline.compared !== null && (
        <p className="truncate border-b border-line px-4 py-1 text-muted">
          Differences to <code>{timeline.compared.runId}</code>
          {timeline.compared.took !== null && `, which took ${duration(timeline.compared.took)}`}
        </p>
      )}
      {rows.length === 0 ? (
        <Empty title={filter === "" ? "This run has no tasks" : `No task contains "${filter}"`} />
      ) : (
        <TimelineView
          timeline={timeline}
          rows={rows}
          showPath={showPath}
          selectedTask={textOf(search, "task") ?? null}
          onSelect={(task) => setSearch({ task: task ?? undefined })}
          onOpen={open}
          onToggle={toggle}
        />
      )}
      <Legend isRunning={timeline.run.ended === null} />
    </div>
  );
}

function Choice({
  on,
  onChange,
  children,
}: {
  readonly on: boolean;
  readonly onChange: (on: boolean) => void;
  readonly children: React.ReactNode;
}) {
  return (
    <Button
      kind="quiet"
      aria-pressed={on}
      className={cx("border-line", on && "border-accent! bg-accent-soft text-text!")}
      onClick={() => onChange(!on)}
    >
      {children}
    </Button>
  );
}

function pathText({ path }: Timeline): string {
  const tasks = new Set(path.map(({ task }) => task)).size;
  const length = path.at(-1)!.end - path[0]!.start;
  return `${tasks} ${tasks === 1 ? "task" : "tasks"}, ${duration(length)}:`;
}

function pathNames({ path, tasks }: Timeline): string[] {
  return path
    .map(({ mapIndex, task }) => {
      const name = tasks[task]?.taskId.split(".").at(-1) ?? "";
      return mapIndex < 0 ? name : `${name}[${mapIndex}]`;
    })
    .filter((name, at, all) => name !== all[at - 1]);
}

const KEYS: readonly (readonly [string, string])[] = [
  ["Scheduled", "h-0.5 bg-scheduled"],
  ["Queued", "h-1.5 bg-queued"],
  ["Running", "h-3 bg-running"],
  ["Success", "h-3 bg-success"],
  ["Failed try", "h-3 bg-failed"],
  ["Waiting", "h-3 bg-deferred/60"],
  ["Retry", "h-0 border-t-2 border-dotted border-retry"],
];

function Legend({ isRunning }: { readonly isRunning: boolean }) {
  return (
    <footer className="flex h-8 shrink-0 items-center gap-x-5 overflow-hidden border-t border-line px-4 text-sm text-muted">
      {KEYS.map(([label, look]) => (
        <span key={label} className="inline-flex items-center gap-1.5 whitespace-nowrap">
          <span aria-hidden className={cx("w-4 rounded-sm", look)} />
          {label}
        </span>
      ))}
      {isRunning && (
        <span className="inline-flex items-center gap-1.5 whitespace-nowrap">
          <span aria-hidden className="h-3 w-4 rounded-sm border border-dashed border-muted" />
          Expected
        </span>
      )}
      <span className="ml-auto min-w-0 truncate max-lg:hidden">
        Ctrl wheel zooms, Shift wheel or drag moves
      </span>
    </footer>
  );
}
