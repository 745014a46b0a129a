/** The selected task of a timeline: its intervals, why it is in its state, and what can be done. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ClearTasks, MarkTasks } from "../../actions/task-actions.tsx";
import { usePreferences } from "../../app/preferences.ts";
import { StateBadge, StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { clock, count, duration } from "../../time/format.ts";
import {
  lookOfInterval,
  type Timeline,
  type TimelineInstance,
  type TimelineTask,
} from "../../timeline/timeline-data.ts";
import { stateOf } from "../../timeline/timeline-rows.ts";
import { Button, buttonClass } from "../../ui/button.tsx";
import { Facts } from "../../ui/page.tsx";
import { WhyTab } from "../task/why-tab.tsx";
import type { RunAddress } from "./run-data.ts";

const SHOWN_INTERVALS = 40;
const SHOWN_INSTANCES = 60;

export function TaskPane({
  address,
  timeline,
  task,
}: {
  readonly address: RunAddress;
  readonly timeline: Timeline;
  readonly task: TimelineTask;
}) {
  const [dialog, setDialog] = useState<"clear" | "mark" | null>(null);
  const position = timeline.tasks.indexOf(task);
  const [instance] = task.instances;
  const usual = timeline.usual?.tasks[position] ?? null;
  const before = timeline.compared?.tasks[position] ?? null;
  const tasks = [{ ...address, taskId: task.taskId, mapIndex: null }];
  const link = { dagId: address.dagId, runId: address.runId, taskId: task.taskId };
  return (
    <div className="flex flex-col">
      <section className="flex flex-col gap-3 border-b border-line px-4 py-3">
        <StateBadge state={stateOf(task)} />
        <Facts
          rows={[
            ["Operator", <code key="operator">{task.operator || "–"}</code>],
            usual === null ? null : ["Usual", `${duration(usual.p50)}, at most ${duration(usual.p95)}`],
            before === null ? null : ["Previous run", duration(before)],
            task.upstream.length === 0
              ? null
              : ["After", task.upstream.map((at) => timeline.tasks[at]?.taskId).join(", ")],
          ]}
        />
        <div className="flex flex-wrap gap-2">
          <Link to="/dags/$dagId/runs/$runId/tasks/$taskId" params={link} className={buttonClass("primary")}>
            {task.isMapped ? "All instances" : "Log and details"}
          </Link>
          <Button onClick={() => setDialog("clear")}>Clear…</Button>
          <Button onClick={() => setDialog("mark")}>Mark as…</Button>
        </div>
      </section>
      {task.isMapped ? (
        <Instances task={task} address={address} />
      ) : (
        instance !== undefined && <Intervals instance={instance} timeline={timeline} />
      )}
      {!task.isRemoved && (
        <section className="py-1">
          <h3 className="px-4 pt-2">Why it is in this state</h3>
          <WhyTab address={{ ...address, taskId: task.taskId, mapIndex: -1 }} />
        </section>
      )}
      {dialog === "clear" && <ClearTasks tasks={tasks} onClose={() => setDialog(null)} />}
      {dialog === "mark" && <MarkTasks tasks={tasks} onClose={() => setDialog(null)} />}
    </div>
  );
}

function Intervals({
  instance,
  timeline,
}: {
  readonly instance: TimelineInstance;
  readonly timeline: Timeline;
}) {
  const { zone } = usePreferences();
  const shown = instance.intervals.slice(-SHOWN_INTERVALS);
  return (
    <section className="border-b border-line px-4 py-3">
      <h3 className="mb-1">What it did</h3>
      <ol>
        {shown.map((interval, at) => (
          <li
            key={`${interval.start} ${interval.kind} ${interval.tryNumber}`}
            className="flex h-6 items-center gap-2.5"
          >
            <span className="w-16 shrink-0 font-mono text-muted">
              {clock(timeline.origin + interval.start, zone)}
            </span>
            <StateGlyph state={lookOfInterval(interval)} size={13} />
            <span>{lookOf(interval.kind).label}</span>
            {shown[at - 1]?.tryNumber !== interval.tryNumber && (
              <span className="text-sm text-muted">try {interval.tryNumber}</span>
            )}
            <span className="ml-auto text-muted tabular-nums">
              {interval.next === null && timeline.run.ended === null
                ? "goes on"
                : duration(interval.end - interval.start)}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Instances({ address, task }: { readonly address: RunAddress; readonly task: TimelineTask }) {
  const { instances, map } = task;
  return (
    <section className="border-b border-line px-4 py-3">
      <h3 className="mb-1">{count(map?.instances ?? instances.length)} instances</h3>
      <p className="mb-2 flex flex-wrap gap-x-4">
        {map?.counts.map(({ count: number, state }) => (
          <span key={state} className="inline-flex items-center gap-1.5">
            <StateGlyph state={state} size={13} /> {count(number)} {lookOf(state).label.toLowerCase()}
          </span>
        ))}
      </p>
      <ul className="flex flex-wrap gap-1">
        {instances.slice(0, SHOWN_INSTANCES).map(({ label, mapIndex, state }) => (
          <li key={mapIndex}>
            <Link
              to="/dags/$dagId/runs/$runId/tasks/$taskId"
              params={{ dagId: address.dagId, runId: address.runId, taskId: task.taskId }}
              search={{ map: mapIndex }}
              title={`${label ?? mapIndex}: ${lookOf(state).label}`}
              className="block rounded-sm p-0.5 hover:bg-hover"
            >
              <StateGlyph state={state} title={`${label ?? mapIndex}: ${lookOf(state).label}`} />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
