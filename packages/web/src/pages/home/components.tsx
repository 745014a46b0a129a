/** Which processes are alive: one mark each, and the age of the oldest heartbeat of their kind. */
import { Link } from "@tanstack/react-router";
import { pagePath } from "../../app/paths.ts";
import { duration } from "../../time/format.ts";
import { cx } from "../../ui/class-names.ts";
import type { Home } from "./home.ts";

const NAMES: Readonly<Record<string, string>> = {
  scheduler: "Schedulers",
  backfill: "Backfill hosts",
  worker: "Workers",
  triggerer: "Triggerers",
  dag_processor: "DAG processors",
  api: "API servers",
};

/** Heartbeats are sent every few seconds; one that is older deserves a look. */
const SILENT_S = 15;
const MOST_MARKS = 40;

export function Components({ home }: { readonly home: Home }) {
  const kinds = Map.groupBy(home.components, ({ kind }) => kind);
  const order = Object.keys(NAMES);
  const sorted = [...kinds].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  return (
    <div className="grid grid-cols-2 border-t border-line sm:grid-cols-3 lg:grid-cols-6">
      {sorted.map(([kind, processes]) => {
        const alive = processes.filter((each) => each.is_alive && each.heartbeat_age < SILENT_S).length;
        const oldest = Math.max(...processes.map((each) => each.heartbeat_age));
        return (
          <Link
            key={kind}
            to={pagePath("system")}
            className={cx(
              "-mt-px -ml-px flex h-13 min-w-0 flex-col justify-center gap-0.5 border-t border-l border-line px-3 no-underline hover:bg-hover",
              alive < processes.length && "bg-warn-soft",
            )}
          >
            <span className="flex justify-between gap-2">
              <span className="truncate font-medium">{NAMES[kind] ?? kind}</span>
              <span className="text-sm whitespace-nowrap text-muted">
                {alive} of {processes.length}
              </span>
            </span>
            <span className="flex items-center justify-between gap-2 text-sm text-muted">
              <span aria-hidden className="flex gap-0.5 overflow-hidden">
                {processes.slice(0, MOST_MARKS).map((each) => (
                  <i
                    key={each.id}
                    className={cx(
                      "h-2 w-1.5 shrink-0 rounded-[2px]",
                      each.is_alive && each.heartbeat_age < SILENT_S ? "bg-success-soft" : "bg-retry",
                    )}
                  />
                ))}
              </span>
              <span className="whitespace-nowrap">heartbeat {duration(oldest * 1_000)} ago</span>
            </span>
          </Link>
        );
      })}
      <div className="-mt-px -ml-px flex h-13 min-w-0 flex-col justify-center gap-0.5 border-t border-l border-line px-3">
        <span className="font-medium">PostgreSQL</span>
        <span className="text-sm text-muted">answers in {duration(home.database.latency_ms)}</span>
      </div>
    </div>
  );
}
