/** Why a task is in its state: its reasons, and for each task that they name, the reasons of that one. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { StateBadge, StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { Loads } from "../../ui/panels.tsx";
import { remedyOf } from "./remedies.tsx";
import { type TaskAddress, useWhy } from "./task-data.ts";

const OPEN_CAUSES = 3;
const MOST_DEPTH = 6;

export function WhyTab({ address }: { readonly address: TaskAddress }) {
  return (
    <section aria-label="Why" className="max-w-3xl px-4 py-3">
      <Chain address={address} depth={0} />
    </section>
  );
}

function Chain({ address, depth }: { readonly address: TaskAddress; readonly depth: number }) {
  const why = useWhy(address);
  return (
    <Loads query={why}>
      {({ failed_upstream: failed, instances, reasons, state }) => (
        <ol className="flex flex-col">
          {depth === 0 && (
            <li className="flex items-center gap-2.5 pb-2">
              <StateGlyph state={state} />
              <span>
                <code className="text-base">{address.taskId}</code>
                {instances === null && (
                  <>
                    {" "}
                    is <b className="font-semibold">{lookOf(state).label.toLowerCase()}</b>
                  </>
                )}
              </span>
            </li>
          )}
          {instances !== null && (
            <li className="flex flex-wrap gap-x-4 gap-y-1 pb-2 pl-6.5">
              {instances.map(({ count: number, state: each }) => (
                <span key={each} className="inline-flex items-center gap-1.5">
                  <StateGlyph state={each} size={14} />
                  {count(number)} {lookOf(each).label.toLowerCase()}
                </span>
              ))}
            </li>
          )}
          {reasons.map((reason) => (
            <li
              key={`${reason.code} ${reason.message}`}
              className="relative border-l border-line pb-3 pl-4.5 last:pb-1 ml-2"
            >
              <span aria-hidden className="absolute top-1.5 -left-1 size-2 rounded-full bg-line-strong" />
              <p className="break-words">
                {reason.message}
                {reason.until !== null && (
                  <span className="text-muted">
                    {" "}
                    (<Ago at={reason.until} />)
                  </span>
                )}{" "}
                <code className="text-sm text-faint">{reason.code}</code>
              </p>
              {remedyOf(reason.code, address)}
              {reason.tasks !== undefined && (
                <Causes
                  causes={reason.tasks.map((task) => ({
                    ...task,
                    address: {
                      dagId: address.dagId,
                      runId: reason.dag_run_id ?? address.runId,
                      taskId: task.task_id,
                      mapIndex: task.map_index,
                    },
                  }))}
                  depth={depth + 1}
                />
              )}
            </li>
          ))}
          {failed !== null && !isNamed(failed, reasons) && (
            <li className="ml-2 border-l border-line pb-1 pl-4.5">
              <Causes
                title="The failure that began it:"
                causes={[
                  {
                    state: "failed",
                    address: { ...address, taskId: failed.task_id, mapIndex: failed.map_index },
                  },
                ]}
                depth={depth + 1}
              />
            </li>
          )}
        </ol>
      )}
    </Loads>
  );
}

interface Named {
  readonly task_id: string;
  readonly map_index: number;
}

/** The task is already among those of a reason. */
function isNamed(
  task: Named,
  reasons: readonly { readonly tasks?: readonly Named[] | undefined }[],
): boolean {
  return reasons.some(({ tasks = [] }) =>
    tasks.some(({ map_index, task_id }) => task_id === task.task_id && map_index === task.map_index),
  );
}

interface Cause {
  readonly state: string | null;
  readonly address: TaskAddress;
}

function Causes({
  causes,
  depth,
  title,
}: {
  readonly causes: readonly Cause[];
  readonly depth: number;
  readonly title?: string;
}) {
  return (
    <div className="mt-2 flex flex-col gap-2">
      {title !== undefined && <p className="text-muted">{title}</p>}
      {causes.map((cause, at) => (
        <CauseLink
          key={`${cause.address.taskId} ${cause.address.mapIndex}`}
          cause={cause}
          depth={depth}
          isOpen={at < OPEN_CAUSES && cause.state !== "success" && depth < MOST_DEPTH}
        />
      ))}
    </div>
  );
}

function CauseLink({
  cause: { address, state },
  depth,
  isOpen: opensFirst,
}: {
  readonly cause: Cause;
  readonly depth: number;
  readonly isOpen: boolean;
}) {
  const [isOpen, setOpen] = useState(opensFirst);
  return (
    <div>
      <div className="flex items-center gap-3">
        <Link
          to="/dags/$dagId/runs/$runId/tasks/$taskId"
          params={{ dagId: address.dagId, runId: address.runId, taskId: address.taskId }}
          search={address.mapIndex >= 0 ? { map: address.mapIndex } : {}}
          className="link inline-flex items-center gap-2 font-mono"
        >
          <StateBadge
            state={state}
            label={`${address.taskId}${address.mapIndex >= 0 ? `[${address.mapIndex}]` : ""}`}
          />
        </Link>
        {state !== "success" && (
          <button
            type="button"
            aria-expanded={isOpen}
            className="text-sm text-muted hover:text-text"
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? "Hide why" : "Why?"}
          </button>
        )}
      </div>
      {isOpen && (
        <div className="mt-2">
          <Chain address={address} depth={depth} />
        </div>
      )}
    </div>
  );
}
