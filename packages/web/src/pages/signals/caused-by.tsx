/** The signals that created a run, or that started or resumed a try of a task. */
import { $api } from "../../api/client.ts";
import { count } from "../../time/format.ts";
import { VERBS } from "./signal-chain.tsx";
import { SignalLink } from "./signal-link.tsx";

interface Subject {
  readonly dagId: string;
  readonly runId: string;
  /** Absent: the run itself. */
  readonly task?: { readonly taskId: string; readonly mapIndex: number; readonly tryNumber: number };
}

const SHOWN = 3;

export function useCauses({ dagId, runId, task }: Subject) {
  const query = $api.useQuery("get", "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/upstreamSignals", {
    params: {
      path: { dag_id: dagId, dag_run_id: runId },
      query:
        task === undefined
          ? {}
          : { task_id: task.taskId, map_index: task.mapIndex, try_number: task.tryNumber },
    },
  });
  const all = query.data?.signals ?? [];
  return task === undefined ? all : all.filter(({ try_number: tried }) => tried === task.tryNumber);
}

export function CausedBy({ causes }: { readonly causes: ReturnType<typeof useCauses> }) {
  return (
    <span className="flex flex-wrap gap-x-3">
      {causes.slice(0, SHOWN).map((cause) => (
        <span key={`${cause.version} ${cause.kind}`}>
          <span className="text-muted">{VERBS[cause.kind]} by</span> <SignalLink signal={cause} />
        </span>
      ))}
      {causes.length > SHOWN && <span className="text-muted">and {count(causes.length - SHOWN)} more</span>}
    </span>
  );
}
