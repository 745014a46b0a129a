import { Link } from "@tanstack/react-router";
import { SelectedTasks } from "../../actions/selected-tasks.tsx";
import { pagePath, runPath, taskPath } from "../../app/paths.ts";
import { Ago, Exact } from "../../time/time.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Facts } from "../../ui/page.tsx";
import { Pane } from "../../ui/pane.tsx";
import { kindName, taskOf, type Wait } from "./wait.ts";

/** One wait: what it waits for, who looks after it, and what ends it. */
export function WaitPane({ wait, onClose }: { readonly wait: Wait; readonly onClose: () => void }) {
  const { dag_id: dag, dag_run_id: run, task_id: task, triggerer } = wait;
  const signal = signalOf(wait);
  const map = wait.map_index < 0 ? "" : ` --map-index ${wait.map_index}`;
  return (
    <Pane
      title={
        <Link
          to={taskPath(dag, run, task)}
          search={wait.map_index < 0 ? {} : { map: wait.map_index }}
          className="hover:underline"
        >
          {task}
          {wait.map_index >= 0 && `[${wait.map_index}]`}
        </Link>
      }
      onClose={onClose}
    >
      <div className="flex flex-col gap-4 p-4">
        <Facts
          rows={[
            ["Waits for", kindName(wait.kind)],
            wait.name === null ? null : ["Name", wait.name],
            ["Since", <Exact key="since" at={wait.since} />],
            ["Until", <Exact key="until" at={wait.until ?? wait.timeout_at} fallback="no timeout" />],
            wait.task_timeout_at === null
              ? null
              : ["Task times out", <Ago key="task" at={wait.task_timeout_at} />],
            wait.wake_at === null ? null : ["Fires", <Ago key="fires" at={wait.wake_at} />],
            wait.last_polled_at === null
              ? null
              : ["Last poll", <Ago key="polled" at={wait.last_polled_at} />],
            [
              "Triggerer",
              triggerer === null
                ? "none: the engine itself watches it"
                : `${triggerer.id} on ${triggerer.hostname}${triggerer.is_alive ? "" : ", which is not alive"}`,
            ],
            ["Try", wait.try_number],
            [
              "Run",
              <Link key="run" to={runPath(dag, run)} className="link font-mono break-all">
                {run}
              </Link>,
            ],
          ]}
        />
        {wait.members !== null && (
          <ul>
            {wait.members.map(({ name, state }) => (
              <li key={name} className="flex justify-between border-b border-line py-1">
                {name} <span className="text-muted">{state === "fired" ? "has fired" : "open"}</span>
              </li>
            ))}
          </ul>
        )}
        <p className="flex flex-wrap gap-2">
          {signal !== null && (
            <Link to={pagePath("signals")} search={{ send: signal } as never} className={buttonClass()}>
              Send the signal…
            </Link>
          )}
          <SelectedTasks tasks={[taskOf(wait)]} />
        </p>
        <section className="flex flex-col gap-1.5">
          <h3>Arguments</h3>
          <pre className="overflow-auto rounded-md border border-line bg-raised p-2 whitespace-pre-wrap">
            {JSON.stringify(wait.args, null, 2)}
          </pre>
        </section>
        <section className="flex flex-col gap-1.5">
          <h3>On the command line</h3>
          <Copyable text={`tradewind tasks why ${dag} ${run} ${task}${map}`} />
        </section>
      </div>
    </Pane>
  );
}

/** The key of the signal that it waits for; null: it waits for something else, or for any of many keys. */
function signalOf({ args, kind }: Wait): string | null {
  const { key, namespace } = (args ?? {}) as { readonly key?: unknown; readonly namespace?: unknown };
  if (kind !== "tradewind.signal" || namespace !== "default" || typeof key !== "string") return null;
  return key.includes("*") ? null : key;
}
