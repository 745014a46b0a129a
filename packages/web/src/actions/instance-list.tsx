/** The instances that a change concerns: how many in which state, then each of them. */
import type { components } from "../api/schema.gen.ts";
import { StateBadge, StateGlyph } from "../state/glyph.tsx";
import { lookOf } from "../state/states.ts";
import { count } from "../time/format.ts";

export type Instance = components["schemas"]["TaskInstanceResponse"];

const SHOWN = 200;

export function instanceLabel({
  map_index,
  rendered_map_index,
  task_id,
}: Pick<Instance, "map_index" | "rendered_map_index" | "task_id">): string {
  if (map_index < 0 && rendered_map_index === null) return task_id;
  return `${task_id}[${rendered_map_index ?? map_index}]`;
}

export function tasksText(number: number): string {
  return `${count(number)} ${number === 1 ? "task" : "tasks"}`;
}

export function runsText(number: number): string {
  return `${count(number)} ${number === 1 ? "run" : "runs"}`;
}

/** "2 runs are failed again, 1 run is success again". */
export function statesAgain(states: readonly string[], text: (number: number) => string): string {
  return [...Map.groupBy(states, (state) => state)]
    .map(([state, { length }]) => `${text(length)} ${length === 1 ? "is" : "are"} ${state} again`)
    .join(", ");
}

export function showInstances(instances: readonly Instance[]) {
  return <ChangedInstances instances={instances} />;
}

function ChangedInstances({ instances }: { readonly instances: readonly Instance[] }) {
  const states = [...Map.groupBy(instances, ({ state }) => state)].sort((a, b) => b[1].length - a[1].length);
  const runs = [...Map.groupBy(instances.slice(0, SHOWN), (each) => `${each.dag_id} ${each.dag_run_id}`)];
  return (
    <section aria-label="What will change" className="flex flex-col gap-2">
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1 text-muted">
        <span>{tasksText(instances.length)}, now:</span>
        {states.map(([state, own]) => (
          <span key={state} className="inline-flex items-center gap-1.5">
            <StateGlyph state={state} size={14} />
            {count(own.length)} {lookOf(state).label.toLowerCase()}
          </span>
        ))}
      </p>
      <div className="max-h-80 overflow-auto rounded-md border border-line">
        {runs.map(([run, own]) => (
          <section key={run}>
            <h3 className="sticky top-0 truncate border-b border-line bg-raised px-2.5 py-1 text-sm font-medium text-muted">
              {own[0]!.dag_id} <span className="font-mono">{own[0]!.dag_run_id}</span>
            </h3>
            <ul>
              {own.map((each) => (
                <li
                  key={each.id}
                  className="flex h-7 items-center justify-between gap-3 border-b border-line px-2.5 last:border-b-0"
                >
                  <span className="truncate">{instanceLabel(each)}</span>
                  <span className="text-sm text-muted">
                    <StateBadge state={each.state} />
                  </span>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
      {instances.length > SHOWN && (
        <p className="text-sm text-muted">and {count(instances.length - SHOWN)} more</p>
      )}
    </section>
  );
}
