import { Link } from "@tanstack/react-router";
import { backfillPath } from "../../app/paths.ts";
import { Meter } from "../../ui/meter.tsx";
import type { Home } from "./home.ts";

export function Backfills({ home }: { readonly home: Home }) {
  if (home.backfills.length === 0) return null;
  return (
    <section aria-label="Backfills">
      <h2 className="flex gap-3 border-b border-line pb-1.5">
        Backfills <span className="font-normal text-muted">{home.backfills.length}</span>
      </h2>
      <ul>
        {home.backfills.map((each) => {
          const done = each.handled - each.queued - each.running;
          const share = each.total_runs === 0 ? 0 : Math.floor((done / each.total_runs) * 100);
          return (
            <li
              key={each.id}
              className="grid grid-cols-[minmax(0,1fr)_80px_88px] items-center gap-3 border-b border-line py-1.5"
            >
              <Link to={backfillPath(each.id)} className="truncate hover:underline">
                {each.dag_id}{" "}
                <span className="text-muted">
                  {each.from_date.slice(0, 10)} to {each.to_date.slice(0, 10)}
                </span>
              </Link>
              <Meter
                label={`${share} % of the runs have ended`}
                total={each.total_runs}
                parts={[
                  { value: done - each.failed, color: "--s-success" },
                  { value: each.failed, color: "--s-failed" },
                  { value: each.running, color: "--s-running" },
                ]}
              />
              <span className="num text-sm text-muted">
                {each.state === "running" ? `${share} %` : each.state}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
