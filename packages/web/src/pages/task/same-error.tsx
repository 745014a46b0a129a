/** In which of the last runs a task failed for the same reason, and since which version. */
import { Link } from "@tanstack/react-router";
import { $api } from "../../api/client.ts";
import { bytesOf } from "../../api/columns.ts";
import type { components } from "../../api/schema.gen.ts";
import { usePreferences } from "../../app/preferences.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { exact } from "../../time/format.ts";
import { cx } from "../../ui/class-names.ts";
import type { TaskAddress } from "./task-data.ts";

type Answer = components["schemas"]["UiSameError"];

const RUNS = 12;

export function SameError({
  address,
  tryNumber,
}: {
  readonly address: TaskAddress;
  readonly tryNumber: number;
}) {
  const query = $api.useQuery(
    "get",
    "/ui/dags/{dag_id}/runs/{dag_run_id}/task-instances/{task_id}/same-error",
    {
      params: {
        path: { dag_id: address.dagId, dag_run_id: address.runId, task_id: address.taskId },
        query: { map_index: address.mapIndex, try: tryNumber, runs: RUNS },
      },
    },
  );
  const { data } = query;
  if (data === undefined || data.run_ids.length < 2) return null;
  return (
    <section className="flex flex-col gap-1.5 border-b border-line px-4 py-3">
      <h3 className="flex items-center justify-between gap-2">
        Same error
        <span className="text-sm font-normal text-muted">
          in {data.count} of the last {data.run_ids.length} runs
        </span>
      </h3>
      <Strip data={data} address={address} />
      <p className="text-sm text-muted">
        <Beginning data={data} dagId={address.dagId} />
      </p>
    </section>
  );
}

function Strip({ data, address }: { readonly data: Answer; readonly address: TaskAddress }) {
  const { zone } = usePreferences();
  const states = bytesOf(data.states);
  const same = bytesOf(data.same);
  return (
    <ol className="flex flex-wrap gap-y-1">
      {data.run_ids.map((runId, at) => {
        const state = states[at] === 0 ? null : (data.task_states[states[at]!] ?? null);
        const begins = data.since?.run_id === runId && !data.since.is_oldest;
        const when = data.run_after[at];
        const words = `${when == null ? runId : exact(when, zone)}, v${data.versions[at]}: ${lookOf(state).label}${
          same[at] === 1 ? ", same error" : same[at] === 2 ? ", same error in an earlier try" : ""
        }`;
        return (
          <li key={runId} className={cx(begins && "border-l border-dashed border-text pl-1")}>
            <Link
              to="/dags/$dagId/runs/$runId/tasks/$taskId"
              params={{ dagId: address.dagId, runId, taskId: address.taskId }}
              search={address.mapIndex >= 0 ? { map: address.mapIndex } : {}}
              title={words}
              aria-current={runId === address.runId ? "page" : undefined}
              className={cx(
                "block rounded-md p-1 hover:bg-hover aria-[current]:bg-accent-soft",
                same[at] === 0 && state === "failed" && "opacity-50",
              )}
            >
              <StateGlyph state={state} title={words} />
            </Link>
          </li>
        );
      })}
    </ol>
  );
}

function Beginning({ data: { previous, since }, dagId }: { readonly data: Answer; readonly dagId: string }) {
  if (since === null) return "No other run had this error.";
  if (since.is_oldest) return "It may have begun before these runs.";
  if (previous === null) return `It began with a run of v${since.version}, not with a new version.`;
  return (
    <>
      It began with v{since.version}; none of {previous.runs} {previous.runs === 1 ? "run" : "runs"} of v
      {previous.version} had it.{" "}
      <Link
        to="/dags/$dagId"
        params={{ dagId }}
        search={{ tab: "code", version: since.version, compare: previous.version }}
        className="link"
      >
        What v{since.version} changed
      </Link>
    </>
  );
}
