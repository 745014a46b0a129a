import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { change } from "../../actions/change.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { $api } from "../../api/client.ts";
import { messageOf } from "../../api/problem.ts";
import { backfillPath } from "../../app/paths.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { count, duration } from "../../time/format.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Input, Select } from "../../ui/field.tsx";
import { BACKFILLS, REPROCESS, SHOW_BACKFILLS } from "./backfill.ts";
import { estimate, usualMs } from "./estimate.ts";

type Reprocess = keyof typeof REPROCESS;

const SHOWN_DATES = 200;
const ACTIONS = {
  created: "new run",
  cleared: "runs again",
  kept: "kept",
  awaited: "awaited: it is running",
} as const;

/** Creates a backfill after showing what it will do with each date, and how long it will take. */
export function CreateBackfill({ dagId, onClose }: { readonly dagId: string; readonly onClose: () => void }) {
  const navigate = useNavigate();
  const [dag, setDag] = useState(dagId);
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [atOnce, setAtOnce] = useState("10");
  const [reprocess, setReprocess] = useState<Reprocess>("none");
  const [backwards, setBackwards] = useState(false);
  const [stopOnFailure, setStopOnFailure] = useState(false);
  const [busy, setBusy] = useState(false);
  const isComplete = dag !== "" && from !== "" && to !== "" && /^[1-9]\d*$/.test(atOnce);
  const body = {
    dag_id: dag,
    from_date: from,
    to_date: to,
    max_active_runs: Number(atOnce),
    reprocess_behavior: reprocess,
    run_backwards: backwards,
    stop_on_failure: stopOnFailure,
  };
  const request = { method: "POST", path: BACKFILLS, body } as const;
  const preview = $api.useQuery(
    "post",
    "/api/v2/backfills/dry_run",
    { body },
    { enabled: isComplete, retry: false, placeholderData: (before) => before },
  );
  const dags = $api.useQuery("get", "/ui/dags", { params: { query: { q: dag, limit: 20 } } });
  const planned = isComplete ? preview.data : undefined;
  const work =
    planned?.backfills.filter(({ action }) => action === "created" || action === "cleared").length ?? 0;
  const row = dags.data?.dags.find(({ dag_id }) => dag_id === dag);
  const usual = row === undefined ? null : usualMs(row.bars);
  const total =
    planned === undefined
      ? 0
      : Math.round((work / Math.max(1, planned.backfills.length)) * planned.total_entries);
  return (
    <Dialog
      open
      wide
      onOpenChange={onClose}
      title="New backfill"
      description="Runs a DAG for a range of dates of its schedule."
      footer={
        <>
          <Twin
            cli={commandOf(
              "tradewind",
              "backfill",
              "create",
              dag || "<dag>",
              "--from",
              from,
              "--to",
              to,
              "--max-active",
              atOnce,
              ...(reprocess === "none" ? [] : ["--reprocess", reprocess]),
              backwards && "--reverse",
              stopOnFailure && "--stop-on-failure",
            )}
            request={request}
          />
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={busy || planned === undefined || preview.isError}
            onClick={async () => {
              setBusy(true);
              const created = await change<{ readonly id: number }>({
                request,
                done: `The backfill of ${dag} has begun`,
                reload: SHOW_BACKFILLS,
              });
              setBusy(false);
              if (created) void navigate({ to: backfillPath(created.answer.id) });
            }}
          >
            {planned === undefined
              ? "Create backfill"
              : `Create backfill of ${count(planned.total_entries)} dates`}
          </Button>
        </>
      }
    >
      <div className="grid gap-5 sm:grid-cols-2">
        <div className="flex flex-col gap-3">
          <Field label="DAG" required>
            {(ids) => (
              <Input
                {...ids}
                list="backfill-dags"
                value={dag}
                onChange={(event) => setDag(event.target.value)}
              />
            )}
          </Field>
          <datalist id="backfill-dags">
            {dags.data?.dags.map(({ dag_id }) => (
              <option key={dag_id} value={dag_id} />
            ))}
          </datalist>
          <div className="grid grid-cols-2 gap-3">
            <Field label="From" required>
              {(ids) => (
                <Input {...ids} type="date" value={from} onChange={(event) => setFrom(event.target.value)} />
              )}
            </Field>
            <Field label="To" required>
              {(ids) => (
                <Input {...ids} type="date" value={to} onChange={(event) => setTo(event.target.value)} />
              )}
            </Field>
          </div>
          <Field label="Runs at once">
            {(ids) => (
              <Input
                {...ids}
                inputMode="numeric"
                value={atOnce}
                onChange={(event) => setAtOnce(event.target.value)}
              />
            )}
          </Field>
          <Field label="Dates that have a run">
            {(ids) => (
              <Select
                {...ids}
                value={reprocess}
                onChange={(event) => setReprocess(event.target.value as Reprocess)}
              >
                {Object.entries(REPROCESS).map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              checked={backwards}
              onChange={(event) => setBackwards(event.target.checked)}
            />
            Newest date first
          </label>
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              checked={stopOnFailure}
              onChange={(event) => setStopOnFailure(event.target.checked)}
            />
            Stop after the first failed run
          </label>
        </div>
        <div className="flex min-w-0 flex-col gap-2">
          <h3>What it will do</h3>
          {preview.isError && isComplete ? (
            <p role="alert" className="text-danger">
              {messageOf(preview.error)}
            </p>
          ) : planned === undefined ? (
            <p className="text-muted">
              Choose a DAG and its dates: each date is listed here before anything starts.
            </p>
          ) : (
            <>
              <p>
                {count(planned.total_entries)} dates.{" "}
                {usual === null
                  ? "The DAG has no finished run yet, so its duration is unknown."
                  : `A run usually takes ${duration(usual)}: about ${duration(estimate(total, usual, Number(atOnce)))} in all.`}
              </p>
              <ul className="max-h-72 overflow-auto rounded-md border border-line">
                {planned.backfills.slice(0, SHOWN_DATES).map(({ logical_date, action, state }) => (
                  <li
                    key={logical_date}
                    className="flex items-center gap-2 border-b border-line px-2 py-1 last:border-b-0"
                  >
                    <StateGlyph state={state} size={14} />
                    <span className="tabular-nums">
                      {logical_date?.replace("T", " ").replace(/(?:\.000)?Z$/, "")}
                    </span>
                    <span className="ml-auto text-muted">{ACTIONS[action]}</span>
                  </li>
                ))}
              </ul>
              {planned.total_entries > SHOWN_DATES && (
                <p className="text-muted">and {count(planned.total_entries - SHOWN_DATES)} more</p>
              )}
            </>
          )}
        </div>
      </div>
    </Dialog>
  );
}
