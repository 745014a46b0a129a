import { useState } from "react";
import type { components } from "../api/schema.gen.ts";
import { count } from "../time/format.ts";
import { Button } from "../ui/button.tsx";
import { type RunAction, RunActionDialog } from "./run-actions.tsx";

type Run = components["schemas"]["DAGRunResponse"];

/** What can be done with the selected rows of a list of runs. Each concerns the runs for which it means something. */
export function SelectedRuns({ runs }: { readonly runs: readonly Run[] }) {
  const [chosen, setChosen] = useState<{ readonly action: RunAction; readonly runs: readonly Run[] }>();
  const open = runs.filter(({ state }) => state === "running" || state === "queued");
  const failed = runs.filter(({ state }) => state === "failed");
  const ended = runs.filter((run) => !open.includes(run));
  const button = (action: RunAction, label: string, of: readonly Run[]) =>
    of.length > 0 && (
      <Button
        kind={action === "cancel" || action === "delete" ? "danger" : "plain"}
        onClick={() => setChosen({ action, runs: of })}
      >
        {label}
        {of.length < runs.length && ` (${count(of.length)})`}…
      </Button>
    );
  return (
    <>
      {button("retry", "Run failed tasks again", failed)}
      {button("clear", "Clear", runs)}
      {button("mark", "Mark as", runs)}
      {button("cancel", "Cancel", open)}
      {button("delete", "Delete", ended)}
      {chosen !== undefined && (
        <RunActionDialog
          action={chosen.action}
          runs={chosen.runs.map(({ dag_id, dag_run_id, state }) => ({
            dagId: dag_id,
            runId: dag_run_id,
            state,
          }))}
          onClose={() => setChosen(undefined)}
        />
      )}
    </>
  );
}
