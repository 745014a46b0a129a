/** How far is this backfill, and how long will it still take? */
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { change } from "../../actions/change.ts";
import { commandOf, type Request } from "../../actions/command-text.ts";
import { Confirm } from "../../actions/confirm.tsx";
import { Twin } from "../../actions/twin.tsx";
import { $api } from "../../api/client.ts";
import { dagPath } from "../../app/paths.ts";
import { useReload } from "../../live/reload.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { count, duration } from "../../time/format.ts";
import { Ago, Elapsed, Exact } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { Input } from "../../ui/field.tsx";
import { Meter } from "../../ui/meter.tsx";
import { Fact, Facts, PageBody, PageHeader } from "../../ui/page.tsx";
import { Loads } from "../../ui/panels.tsx";
import { BACKFILLS, isOpen, lookOfBackfill, type Progress, REPROCESS, SHOW_BACKFILLS } from "./backfill.ts";
import { BackfillRuns } from "./backfill-runs.tsx";

export default function BackfillPage() {
  const { backfillId } = useParams({ strict: false }) as { backfillId: string };
  const progress = $api.useQuery("get", "/api/v2/backfills/{backfill_id}/progress", {
    params: { path: { backfill_id: Number(backfillId) } },
  });
  useReload("backfills", ["/api/v2/backfills/{backfill_id}/progress"]);
  return <Loads query={progress}>{(data) => <BackfillContent progress={data} />}</Loads>;
}

function BackfillContent({ progress }: { readonly progress: Progress }) {
  const { backfill, runs, tasks } = progress;
  return (
    <>
      <PageHeader
        title={`Backfill ${backfill.id}`}
        heading={
          <>
            Backfill {backfill.id}
            <span className="text-base font-normal">
              <StateBadge
                state={lookOfBackfill(backfill)}
                label={backfill.is_stopping ? "Stopping" : capital(backfill.state)}
              />
            </span>
          </>
        }
        facts={
          <>
            <Fact name="DAG">
              <Link to={dagPath(backfill.dag_id)} className="link">
                {backfill.dag_id}
              </Link>
            </Fact>
            <Fact name="Dates">
              {backfill.from_date.slice(0, 10)} to {backfill.to_date.slice(0, 10)}
            </Fact>
            <Fact name="By">{backfill.created_by ?? "–"}</Fact>
            <Fact name="Created">
              <Ago at={backfill.created_at} />
            </Fact>
          </>
        }
        actions={<Actions progress={progress} />}
      />
      <PageBody className="border-t border-line p-4">
        <div className="flex max-w-4xl flex-col gap-6">
          {backfill.waits_because !== null && (
            <p role="status" className="rounded-md bg-warn-soft px-3 py-2">
              {backfill.waits_because}
            </p>
          )}
          <section className="flex flex-col gap-2">
            <div className="flex flex-wrap items-baseline gap-x-4">
              <h2>{Math.floor(progress.percent)} % done</h2>
              <span className="text-muted">
                {count(runs.finished)} of {count(runs.total)} runs
                {progress.remaining_seconds !== null &&
                  isOpen(backfill) &&
                  `, about ${duration(progress.remaining_seconds * 1_000)} left`}
              </span>
              {progress.eta !== null && isOpen(backfill) && (
                <span className="text-muted">
                  done at <Exact at={progress.eta} />
                </span>
              )}
            </div>
            <Meter
              label={`${runs.succeeded} runs succeeded, ${runs.failed} failed, ${runs.running} are running, of ${runs.total}`}
              total={runs.total}
              parts={[
                { value: runs.succeeded, color: "--s-success" },
                { value: runs.failed, color: "--s-failed" },
                { value: runs.skipped, color: "--s-skipped" },
                { value: runs.running, color: "--s-running" },
              ]}
            />
            <p className="flex flex-wrap gap-x-4 text-muted">
              <span>{count(runs.succeeded)} succeeded</span>
              <span className={runs.failed > 0 ? "text-danger" : ""}>{count(runs.failed)} failed</span>
              <span>{count(runs.running)} running</span>
              {runs.skipped > 0 && <span>{count(runs.skipped)} kept</span>}
              {runs.elsewhere > 0 && <span>{count(runs.elsewhere)} run elsewhere</span>}
            </p>
          </section>
          <BackfillRuns backfill={backfill} />
          <Facts
            rows={[
              [
                "Tasks",
                `${count(tasks.finished)} of ${count(tasks.total)} ended, ${count(tasks.failed)} failed`,
              ],
              ["Runs at once", <Limit key="limit" progress={progress} />],
              ["Existing runs", REPROCESS[backfill.reprocess_behavior]],
              ["Order", backfill.run_backwards ? "newest date first" : "oldest date first"],
              ["After a failed run", backfill.stop_on_failure ? "stops" : "continues"],
              ["Version", backfill.run_on_latest_version ? "the newest" : "that of each existing run"],
              ["Took", <Elapsed key="took" from={backfill.started_at} to={backfill.completed_at} />],
            ]}
          />
        </div>
      </PageBody>
    </>
  );
}

function Limit({ progress: { backfill } }: { readonly progress: Progress }) {
  const [limit, setLimit] = useState(String(backfill.max_active_runs));
  if (!isOpen(backfill)) return <>{backfill.max_active_runs}</>;
  const isChanged = /^[1-9]\d*$/.test(limit) && Number(limit) !== backfill.max_active_runs;
  const request = {
    method: "PATCH",
    path: `${BACKFILLS}/${backfill.id}`,
    body: { max_active_runs: Number(limit) },
  } as const;
  return (
    <span className="flex items-center gap-2">
      <span className="w-20">
        <Input
          aria-label="Runs at once"
          inputMode="numeric"
          value={limit}
          onChange={(event) => setLimit(event.target.value)}
        />
      </span>
      <Button
        disabled={!isChanged}
        onClick={() =>
          void change({
            request,
            done: `At most ${limit} runs at once`,
            reload: SHOW_BACKFILLS,
          })
        }
      >
        Set
      </Button>
      <Twin
        cli={commandOf("tradewind", "backfill", "set", backfill.id, "--max-active", limit)}
        request={request}
      />
    </span>
  );
}

function Actions({ progress: { backfill } }: { readonly progress: Progress }) {
  const [isCancelling, setIsCancelling] = useState(false);
  if (!isOpen(backfill)) return null;
  const verb = backfill.is_paused ? "unpause" : "pause";
  const request = (action: "pause" | "unpause" | "cancel"): Request => ({
    method: "PUT",
    path: `${BACKFILLS}/${backfill.id}/${action}`,
  });
  return (
    <>
      <Twin cli={commandOf("tradewind", "backfill", verb, backfill.id)} request={request(verb)} />
      <Button
        onClick={() =>
          void change({
            request: request(verb),
            undo: request(backfill.is_paused ? "pause" : "unpause"),
            done: backfill.is_paused ? "The backfill continues" : "No more runs of the backfill start",
            reload: SHOW_BACKFILLS,
          })
        }
      >
        {backfill.is_paused ? "Continue backfill" : "Pause backfill"}
      </Button>
      <Button kind="danger" onClick={() => setIsCancelling(true)}>
        Cancel backfill…
      </Button>
      {isCancelling && (
        <Confirm
          title={`Cancel backfill ${backfill.id}?`}
          action="Cancel backfill"
          done={`Backfill ${backfill.id} is cancelled`}
          reload={SHOW_BACKFILLS}
          cli={commandOf("tradewind", "backfill", "cancel", backfill.id, "--yes")}
          request={request("cancel")}
          onClose={() => setIsCancelling(false)}
        >
          <p>
            Its running and queued runs are cancelled, and no further ones start. Runs that have ended stay.
          </p>
        </Confirm>
      )}
    </>
  );
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
