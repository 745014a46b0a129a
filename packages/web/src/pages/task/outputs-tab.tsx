/** What a task received and what it returned. */
import { Link } from "@tanstack/react-router";
import { $api } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { bytes } from "../../time/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Failure, Loading, Loads } from "../../ui/panels.tsx";
import { type TaskAddress, useDagTask } from "./task-data.ts";

export function OutputsTab({
  address,
  state,
}: {
  readonly address: TaskAddress;
  readonly state: string | null;
}) {
  const task = useDagTask(address);
  return (
    <div className="flex max-w-4xl flex-col gap-6 px-4 py-3">
      <section>
        <h2 className="mb-1.5">Output</h2>
        <Output address={address} absent={absentText(state)} />
      </section>
      <section>
        <h2 className="mb-1.5">Outputs of its upstream tasks</h2>
        <Loads query={task}>
          {({ upstream_task_ids: upstream }) =>
            upstream === null || upstream.length === 0 ? (
              <p className="text-muted">It has no upstream task.</p>
            ) : (
              <div className="flex flex-col gap-3">
                {upstream.map((taskId) => (
                  <div key={taskId}>
                    <Link
                      to="/dags/$dagId/runs/$runId/tasks/$taskId"
                      params={{ dagId: address.dagId, runId: address.runId, taskId }}
                      className="link font-mono"
                    >
                      {taskId}
                    </Link>
                    <Output
                      address={{ ...address, taskId, mapIndex: -1 }}
                      absent="No output, or one per instance of a map."
                    />
                  </div>
                ))}
              </div>
            )
          }
        </Loads>
      </section>
    </div>
  );
}

function absentText(state: string | null): string {
  return state === "success"
    ? "The task returned nothing."
    : "There is no output until the task has succeeded.";
}

export function Output({ address, absent }: { readonly address: TaskAddress; readonly absent: string }) {
  const output = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/xcomEntries/{xcom_key}",
    {
      params: {
        path: {
          dag_id: address.dagId,
          dag_run_id: address.runId,
          task_id: address.taskId,
          xcom_key: "return_value",
        },
        query: { map_index: address.mapIndex },
      },
    },
  );
  if (output.error instanceof ApiProblem && output.error.status === 404)
    return <p className="text-muted">{absent}</p>;
  if (output.error !== null && output.data === undefined)
    return <Failure error={output.error} onRetry={() => void output.refetch()} />;
  if (output.data === undefined) return <Loading />;
  const { object, value } = output.data;
  return (
    <>
      {object !== undefined && (
        <p className="text-muted">
          {bytes(object.bytes)} in the object store <code>{object.key}</code>
        </p>
      )}
      {value !== undefined && value !== null && <JsonTree value={value} name={address.taskId} />}
      {value === null && object === undefined && <p className="text-muted">{absent}</p>}
    </>
  );
}
