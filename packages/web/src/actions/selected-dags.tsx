/** What can be done with the selected rows of the table of DAGs, each with a list of what it changes. */
import { useState } from "react";
import type { components } from "../api/schema.gen.ts";
import { fieldOf } from "../forms/fields.ts";
import { initialValue, problemsOf } from "../forms/values.ts";
import { count } from "../time/format.ts";
import { Ago } from "../time/time.tsx";
import { Button } from "../ui/button.tsx";
import { Segmented } from "../ui/tabs.tsx";
import { ActionDialog } from "./action-dialog.tsx";
import { apiPath, sendAll } from "./api-call.ts";
import { ChangeList } from "./change-list.tsx";
import type { RunRef } from "./commands.ts";
import { pauseCommand, pauseRequest } from "./pause/use-pause.ts";
import { ClearRuns } from "./run-actions.tsx";
import { triggerCommand, triggerRequest } from "./trigger/trigger-request.ts";

export interface SelectedDag {
  readonly dagId: string;
  readonly isPaused: boolean;
  readonly nextRun: string | null;
  /** The latest ones, the oldest first. */
  readonly runs: readonly { readonly runId: string; readonly state: string }[];
}

type Action = "pause" | "unpause" | "trigger" | "clear";

interface DagsProps {
  readonly dags: readonly SelectedDag[];
  readonly onClose: () => void;
}

export function SelectedDags({ dags }: { readonly dags: readonly SelectedDag[] }) {
  const [chosen, setChosen] = useState<{ readonly action: Action; readonly dags: readonly SelectedDag[] }>();
  const button = (action: Action, label: string, of: readonly SelectedDag[]) =>
    of.length > 0 && (
      <Button onClick={() => setChosen({ action, dags: of })}>
        {label}
        {of.length < dags.length && ` (${count(of.length)})`}…
      </Button>
    );
  const props = { dags: chosen?.dags ?? [], onClose: () => setChosen(undefined) };
  return (
    <>
      {button("trigger", "Trigger", dags)}
      {button(
        "clear",
        "Run failed tasks again",
        dags.filter(({ runs }) => runs.some(({ state }) => state === "failed")),
      )}
      {button(
        "pause",
        "Pause",
        dags.filter(({ isPaused }) => !isPaused),
      )}
      {button(
        "unpause",
        "Resume",
        dags.filter(({ isPaused }) => isPaused),
      )}
      {chosen?.action === "trigger" && <TriggerDags {...props} />}
      {chosen?.action === "clear" && <ClearFailed {...props} />}
      {chosen?.action === "pause" && <PauseDags {...props} isPaused />}
      {chosen?.action === "unpause" && <PauseDags {...props} isPaused={false} />}
    </>
  );
}

function dagsText(number: number): string {
  return `${count(number)} ${number === 1 ? "DAG" : "DAGs"}`;
}

function PauseDags({ dags, isPaused, onClose }: DagsProps & { readonly isPaused: boolean }) {
  const verb = isPaused ? "Pause" : "Resume";
  const calls = (value: boolean) => dags.map(({ dagId }) => pauseRequest(dagId, value));
  return (
    <ActionDialog
      title={`${verb} ${dagsText(dags.length)}`}
      explanation={
        isPaused
          ? "No scheduled run is created, and no run or task starts. Tasks that run now end as usual."
          : "Their schedules go on, and queued runs start."
      }
      emptyText=""
      onClose={onClose}
      plan={{
        preview: async () => dags,
        previewKey: ["pause", dags, isPaused],
        calls: () => calls(isPaused),
        cli: () => [
          pauseCommand(
            dags.map(({ dagId }) => dagId),
            isPaused,
          ),
        ],
        label: () => `${verb} ${dagsText(dags.length)}`,
        done: () => `${verb}d ${dagsText(dags.length)}`,
        undo: () => ({
          run: () => sendAll(calls(!isPaused)),
          done: `${dagsText(dags.length)} ${dags.length === 1 ? "is" : "are"} ${isPaused ? "active" : "paused"} again`,
        }),
      }}
      show={(items) => (
        <ChangeList
          label="What will change"
          items={items.map(({ dagId, nextRun }) => ({
            key: dagId,
            name: dagId,
            note:
              nextRun === null ? (
                "no scheduled run is due"
              ) : (
                <>
                  next run <Ago at={nextRun} />
                </>
              ),
          }))}
        />
      )}
    />
  );
}

const REACHES = [
  { value: "latest", label: "Latest run" },
  { value: "shown", label: "Failed runs of the last 30" },
] as const;

/** Clears the failed tasks of failed runs. */
function ClearFailed({ dags, onClose }: DagsProps) {
  const latest = failedRuns(dags, 1);
  const [reach, setReach] = useState<(typeof REACHES)[number]["value"]>(
    latest.length > 0 ? "latest" : "shown",
  );
  return (
    <ClearRuns
      isRetry
      runs={reach === "latest" ? latest : failedRuns(dags, Number.POSITIVE_INFINITY)}
      reach={<Segmented label="Runs" options={REACHES} value={reach} onChange={setReach} />}
      onClose={onClose}
    />
  );
}

function failedRuns(dags: readonly SelectedDag[], most: number): RunRef[] {
  return dags.flatMap(({ dagId, runs }) =>
    runs
      .slice(-most)
      .filter(({ state }) => state === "failed")
      .map(({ runId }) => ({ dagId, runId })),
  );
}

interface Triggered {
  readonly dagId: string;
  readonly isPaused: boolean;
  /** Params that have no default. */
  readonly missing: readonly string[];
}

function TriggerDags({ dags, onClose }: DagsProps) {
  const inputs = (items: readonly Triggered[]) =>
    items
      .filter(({ missing }) => missing.length === 0)
      .map(({ dagId }) => ({ dagId, conf: {}, logicalDate: "", note: "" }));
  const text = (items: readonly Triggered[]) => dagsText(inputs(items).length);
  return (
    <ActionDialog
      title={`Trigger ${dagsText(dags.length)}`}
      explanation="Starts one run of each, with the defaults of its params and without a logical date."
      emptyText=""
      onClose={onClose}
      plan={{
        preview: (signal) => readTriggered(dags, signal),
        previewKey: ["trigger", dags],
        calls: (items) => inputs(items).map(triggerRequest),
        cli: (items) => inputs(items).map(triggerCommand),
        label: (items) => `Trigger ${text(items)}`,
        done: (items) => `Triggered ${text(items)}`,
      }}
      show={(items) => (
        <ChangeList
          label="What will start"
          items={items.map(({ dagId, isPaused, missing }) => ({
            key: dagId,
            name: dagId,
            note:
              missing.length > 0 ? (
                <span className="text-danger">left out: needs {missing.join(", ")}</span>
              ) : isPaused ? (
                "paused: the run is queued until the schedule is resumed"
              ) : (
                "one run"
              ),
          }))}
        />
      )}
    />
  );
}

async function readTriggered(dags: readonly SelectedDag[], signal: AbortSignal): Promise<Triggered[]> {
  const details = await sendAll<components["schemas"]["DAGDetailsResponse"]>(
    dags.map(({ dagId }) => ({ method: "GET", path: apiPath`/dags/${dagId}/details` })),
    signal,
  );
  return details.map(({ dag_id, is_paused, params, params_schema }) => {
    const field = fieldOf(params_schema ?? {}, "conf");
    const defaults = { ...(initialValue(field) as object | undefined), ...params };
    return {
      dagId: dag_id,
      isPaused: is_paused,
      missing: [...problemsOf(field, defaults).keys()].map((pointer) => pointer.slice(1)),
    };
  });
}
