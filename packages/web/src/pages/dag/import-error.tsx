/** Above every tab while the file of the DAG does not load: where it is wrong. Runs continue with the last good version. */
import { useState } from "react";
import { $api } from "../../api/client.ts";
import { Elapsed } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { CodeFrame } from "../errors/code-frame.tsx";
import type { DagDetails } from "./dag-header.tsx";

export function ImportError({ dag }: { readonly dag: DagDetails }) {
  const filename = dag.relative_fileloc ?? dag.fileloc;
  const errors = $api.useQuery("get", "/api/v2/importErrors", {
    params: { query: { filename, limit: 1 } },
  });
  const [isOpen, setOpen] = useState(true);
  const error = errors.data?.import_errors[0];
  if (error === undefined) return null;
  const version = dag.latest_dag_version?.version_number;
  return (
    <section role="alert" className="border-y border-line bg-danger-soft">
      <header className="flex items-center gap-2 px-4 py-1.5">
        <p className="min-w-0 flex-1 truncate">
          <span className="font-semibold text-danger">
            {filename} has not loaded for <Elapsed from={error.timestamp} to={null} />.
          </span>
          {version !== undefined && <span className="text-muted"> Runs continue with v{version}.</span>}
        </p>
        <Button kind="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide the error" : "Show the error"}
        </Button>
      </header>
      {isOpen && (
        <div className="max-h-64 overflow-auto border-t border-line bg-surface">
          <CodeFrame text={error.stack_trace} />
        </div>
      )}
    </section>
  );
}
