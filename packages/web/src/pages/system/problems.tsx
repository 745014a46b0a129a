import { StateGlyph } from "../../state/glyph.tsx";
import { count } from "../../time/format.ts";
import type { Executor, Health } from "./system.ts";

const PARTS = [
  ["metadatabase", "database"],
  ["scheduler", "scheduler"],
  ["triggerer", "triggerer"],
  ["dag_processor", "DAG processor"],
] as const;

/** What the health check finds, with remedies; nothing if all is well. */
export function Problems({
  health,
  executors,
}: {
  readonly health: Health;
  readonly executors: readonly Executor[];
}) {
  const { scheduler, triggerer } = health;
  const found = [
    ...PARTS.filter(([part]) => health[part].status === "unhealthy").map(
      ([, name]) => `No ${name} is alive. Start one, or look at its log.`,
    ),
    ...(health.metadatabase.status === "degraded"
      ? ["The database has rejected writes for lack of disk space. Free some, or give it a larger disk."]
      : []),
    ...(scheduler.unserved_queues ?? []).map(
      ({ executor, queue, tasks }) =>
        `${count(tasks)} tasks wait in the queue "${queue}" of the executor "${executor}", which no worker serves. Start one: tradewind worker --queues ${queue}`,
    ),
    ...(triggerer.unclaimed_triggers ?? []).map(
      ({ queue, triggers }) =>
        `${count(triggers)} triggers wait in the queue "${queue}", which no triggerer serves.`,
    ),
    ...((triggerer.suspected_triggers ?? 0) > 0
      ? [
          `${count(triggerer.suspected_triggers!)} triggers are suspected of crashing the process that runs them.`,
        ]
      : []),
    ...executors.flatMap(({ name, problems }) =>
      problems.map(
        ({ message, remedy }) => `Executor "${name}": ${message}${remedy === null ? "" : ` ${remedy}`}`,
      ),
    ),
  ];
  if (found.length === 0) return null;
  return (
    <ul role="alert" className="border-b border-line bg-warn-soft px-4 py-2">
      {found.map((text) => (
        <li key={text} className="flex items-start gap-2 py-0.5">
          <StateGlyph state="late" />
          {text}
        </li>
      ))}
    </ul>
  );
}
