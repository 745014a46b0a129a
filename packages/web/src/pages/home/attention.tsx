/** What a person should look at, the newest failure first. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { dagPath, pagePath, runPath, taskPath } from "../../app/paths.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { Ago } from "../../time/time.tsx";
import type { Home } from "./home.ts";

const LATE = {
  not_created: "A run is due and was not created",
  not_started: "A run is due and has not started",
  deadline: "A run has missed its deadline",
} as const;

export function Attention({ home }: { readonly home: Home }) {
  const { failing, late, import_errors: errors } = home;
  const { dead_letters: letters, dead_deliveries: deliveries } = home.errors;
  const silent = home.components.filter((each) => !each.is_alive);
  const total =
    failing.length +
    late.length +
    errors.length +
    silent.length +
    (letters > 0 ? 1 : 0) +
    (deliveries > 0 ? 1 : 0);
  return (
    <section aria-label="Needs attention" className="min-w-0">
      <h2 className="flex gap-3 border-b border-line pb-1.5">
        Needs attention <span className="font-normal text-muted">{total}</span>
      </h2>
      {total === 0 && (
        <p className="py-3 text-muted">
          Nothing: no DAG fails or is late, every file loads, and every process is alive.
        </p>
      )}
      <ul>
        {failing.map(({ dag_id: dag, run_id: run, failed_at: at, task }) => (
          <Item
            key={`failing ${dag}`}
            state="failed"
            at={at}
            title={
              <>
                <DagLink dag={dag} />
                {task && (
                  <>
                    {" › "}
                    <Link
                      to={taskPath(dag, run, task.task_id)}
                      search={task.map_index < 0 ? {} : { map: task.map_index }}
                      className="link"
                    >
                      {task.task_id}
                      {task.map_index >= 0 && `[${task.map_index}]`}
                    </Link>
                    <span className="text-muted">
                      , try {task.try_number}
                      {task.failed_instances > 1 && `, ${task.failed_instances} instances failed`}
                    </span>
                  </>
                )}
              </>
            }
            detail={task?.reason ?? "The run has failed"}
            action={
              <Link to={runPath(dag, run)} className="link">
                Open run
              </Link>
            }
          />
        ))}
        {late.map(({ dag_id: dag, because, since, run_id: run }) => (
          <Item
            key={`late ${dag}`}
            state="late"
            at={since}
            title={<DagLink dag={dag} />}
            detail={LATE[because]}
            action={
              run !== null && (
                <Link to={runPath(dag, run)} className="link">
                  Open run
                </Link>
              )
            }
          />
        ))}
        {errors.map(({ id, file, message, created_at: at }) => (
          <Item
            key={`error ${id}`}
            state="upstream_failed"
            at={at}
            title={
              <>
                <span className="font-medium">{file}</span> <span className="text-muted">does not load</span>
              </>
            }
            detail={message}
            action={
              <Link to={pagePath("errors")} search={{ error: id }} className="link">
                Open file
              </Link>
            }
          />
        ))}
        {silent.map(({ id, kind, hostname, heartbeat_age: age }) => (
          <Item
            key={`process ${id}`}
            state="late"
            title={
              <span className="font-medium">
                {kind} {id} on {hostname}
              </span>
            }
            detail={`No heartbeat for ${Math.round(age)} s`}
            action={
              <Link to={pagePath("system")} className="link">
                Open system
              </Link>
            }
          />
        ))}
        {letters > 0 && (
          <Item
            state="failed"
            title={<span className="font-medium">Signals</span>}
            detail={`${letters} could not be delivered to their listeners`}
            action={
              <Link to={pagePath("signals")} search={{ tab: "dead" }} className="link">
                Open dead letters
              </Link>
            }
          />
        )}
        {deliveries > 0 && (
          <Item
            state="failed"
            title={<span className="font-medium">Notices</span>}
            detail={`${deliveries} alerts could not be delivered`}
          />
        )}
      </ul>
    </section>
  );
}

function DagLink({ dag }: { readonly dag: string }) {
  return (
    <Link to={dagPath(dag)} className="font-medium hover:underline">
      {dag}
    </Link>
  );
}

function Item({
  state,
  title,
  detail,
  at,
  action,
}: {
  readonly state: string;
  readonly title: ReactNode;
  readonly detail: string;
  readonly at?: string;
  readonly action?: ReactNode;
}) {
  return (
    <li className="flex gap-2.5 border-b border-line py-1.5">
      <span className="pt-0.5">
        <StateGlyph state={state} />
      </span>
      <span className="min-w-0 flex-1">
        <span className="block truncate">{title}</span>
        <code className="block truncate text-muted" title={detail}>
          {detail}
        </code>
      </span>
      <span className="flex flex-col items-end text-sm whitespace-nowrap text-muted">
        {at === undefined ? "" : <Ago at={at} />}
        {action}
      </span>
    </li>
  );
}
