/** What can be done about a reason: where to look, or what to change. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { PAGES } from "../../app/pages.ts";
import { Copyable } from "../../ui/copy.tsx";
import type { TaskAddress } from "./task-data.ts";

interface Remedy {
  readonly text: string;
  /** A page, if it exists. */
  readonly to?: string;
  readonly label?: string;
  readonly command?: string;
}

const POOL: Remedy = {
  text: "Give the pool more slots, or wait for tasks that hold them.",
  to: "/pools",
  label: "Pools",
};
const PROCESSES: Remedy = { text: "See which processes are alive.", to: "/system", label: "System" };
const WAITING: Remedy = {
  text: "See what it waits for, or resume it manually.",
  to: "/waiting",
  label: "Waiting",
};

function remedy(code: string, { dagId, runId, taskId }: TaskAddress): Remedy | undefined {
  const run = `${dagId} ${runId}`;
  switch (code) {
    case "POOL_FULL":
    case "POOL_KEPT":
    case "POOL_TOO_SMALL":
      return POOL;
    case "POOL_MISSING":
      return {
        text: "Create the pool.",
        to: "/pools",
        label: "Pools",
        command: "tradewind pools set NAME 8",
      };
    case "NO_SCHEDULER":
    case "NO_TRIGGERER":
    case "QUEUE_UNSERVED":
    case "EXECUTOR_MISSING":
    case "EXECUTOR_FAILING":
    case "EXECUTOR_FULL":
    case "WORKERS_BUSY":
    case "TRIGGERER_FULL":
    case "TRIGGER_UNOWNED":
      return PROCESSES;
    case "DAG_PAUSED":
      return { text: "Unpause the DAG.", command: `tradewind dags unpause ${dagId}` };
    case "MAX_ACTIVE_RUNS":
      return { text: "Wait for another run, or raise maxActiveRuns of the DAG." };
    case "MAX_ACTIVE_TASKS":
      return { text: "Wait for other tasks of this run, or raise maxActiveTasks of the DAG." };
    case "DEFERRED":
    case "SIGNAL":
      return WAITING;
    case "RUN_FINISHED":
      return { text: "Clear the task to run it again.", command: `tradewind tasks clear ${run} ${taskId}` };
    case "DEPENDS_ON_PAST":
      return { text: "Clear or mark the task in the earlier run." };
    default:
      return undefined;
  }
}

export function remedyOf(code: string, address: TaskAddress): ReactNode {
  const found = remedy(code, address);
  if (found === undefined) return null;
  const hasPage = found.to !== undefined && PAGES.some(({ to }) => to === found.to);
  return (
    <div className="mt-1 flex flex-col gap-1 text-muted">
      <p>
        {found.text}{" "}
        {hasPage && (
          <Link to={found.to!} className="link">
            {found.label}
          </Link>
        )}
      </p>
      {found.command !== undefined && <Copyable text={found.command} />}
    </div>
  );
}
