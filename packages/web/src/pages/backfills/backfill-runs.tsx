import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { RunActionDialog } from "../../actions/run-actions.tsx";
import { $api } from "../../api/client.ts";
import { runPath } from "../../app/paths.ts";
import { usePreferences } from "../../app/preferences.ts";
import { useReload } from "../../live/reload.ts";
import { lookOf } from "../../state/states.ts";
import { count, shortDate } from "../../time/format.ts";
import { Button } from "../../ui/button.tsx";
import { Loads } from "../../ui/panels.tsx";
import type { Backfill } from "./backfill.ts";

const MOST = 1_000;

/** Every date of a backfill that has a run, as a square in the colour of its state. */
export function BackfillRuns({ backfill }: { readonly backfill: Backfill }) {
  const { zone } = usePreferences();
  const runs = $api.useQuery("get", "/api/v2/dags/{dag_id}/dagRuns", {
    params: {
      path: { dag_id: backfill.dag_id },
      query: {
        limit: MOST,
        order_by: ["logical_date"],
        logical_date_gte: backfill.from_date,
        logical_date_lte: backfill.to_date,
      },
    },
  });
  useReload(`dag:${backfill.dag_id}`, ["/api/v2/dags/{dag_id}/dagRuns"]);
  return (
    <section className="flex flex-col gap-2">
      <h2>Dates</h2>
      <Loads query={runs}>
        {({ dag_runs: shown, total_entries: total }) => (
          <>
            <ul className="flex flex-wrap gap-[3px]">
              {shown.map((run) => {
                const date =
                  run.logical_date === null ? run.dag_run_id : shortDate(Date.parse(run.logical_date), zone);
                const words = `${date}: ${lookOf(run.state).label}`;
                return (
                  <li key={run.dag_run_id}>
                    <Link
                      to={runPath(backfill.dag_id, run.dag_run_id)}
                      preload={false}
                      title={words}
                      aria-label={words}
                      className="block size-4 rounded-[3px] hover:outline-2 hover:outline-text"
                      style={{
                        background: `var(${run.state === "success" ? "--s-success-soft" : lookOf(run.state).color})`,
                      }}
                    />
                  </li>
                );
              })}
            </ul>
            <FailedRuns
              runs={shown
                .filter(({ state }) => state === "failed")
                .map((run) => ({ dagId: run.dag_id, runId: run.dag_run_id, state: run.state }))}
            />
            {(total ?? 0) > shown.length && (
              <p className="text-muted">The first {count(shown.length)} runs in this range.</p>
            )}
          </>
        )}
      </Loads>
    </section>
  );
}

function FailedRuns({ runs }: { readonly runs: Parameters<typeof RunActionDialog>[0]["runs"] }) {
  const [isOpen, setOpen] = useState(false);
  if (runs.length === 0) return null;
  return (
    <p>
      <Button onClick={() => setOpen(true)}>
        Run failed tasks of {count(runs.length)} {runs.length === 1 ? "run" : "runs"} again…
      </Button>
      {isOpen && <RunActionDialog action="retry" runs={runs} onClose={() => setOpen(false)} />}
    </p>
  );
}
