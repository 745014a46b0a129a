/** What happened to a DAG over time, and where? */
import { Link, useParams } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { useState } from "react";
import { TriggerDialog } from "../../actions/trigger/trigger-dialog.tsx";
import { $api } from "../../api/client.ts";
import { pagePath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { Button, buttonClass } from "../../ui/button.tsx";
import { Loads } from "../../ui/panels.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { AuditTab } from "./audit-tab.tsx";
import { CodeTab } from "./code-tab.tsx";
import { DagHeader } from "./dag-header.tsx";
import { ImportError } from "./import-error.tsx";
import { Overview } from "./overview.tsx";
import { RunsTab } from "./runs-tab.tsx";
import { TasksTab } from "./tasks-tab.tsx";

const TABS = [
  { id: "overview", label: "Overview" },
  { id: "runs", label: "Runs" },
  { id: "tasks", label: "Tasks" },
  { id: "code", label: "Code" },
  { id: "audit", label: "Audit" },
] as const;

export default function DagPage() {
  const { dagId } = useParams({ strict: false }) as { dagId: string };
  const [search] = useSearchState();
  const [isTriggering, setTriggering] = useState(false);
  const tab = TABS.find(({ id }) => id === textOf(search, "tab"))?.id ?? "overview";
  const details = $api.useQuery("get", "/api/v2/dags/{dag_id}/details", {
    params: { path: { dag_id: dagId } },
  });
  useReload(`dag:${dagId}`, ["/api/v2/dags/{dag_id}/details"]);
  // Errors of files are in this topic.
  useReload("dags", ["/api/v2/importErrors", "/api/v2/dags/{dag_id}/details"]);
  return (
    <Loads query={details}>
      {(dag) => (
        <>
          <DagHeader
            dag={dag}
            actions={
              <>
                {dag.is_backfillable && (
                  <Link
                    to={pagePath("backfills")}
                    search={{ dag: dagId, create: "1" } as never}
                    className={buttonClass()}
                  >
                    Backfill
                  </Link>
                )}
                <Button kind="primary" onClick={() => setTriggering(true)}>
                  <Play aria-hidden />
                  Trigger
                </Button>
              </>
            }
          />
          {isTriggering && <TriggerDialog dagId={dagId} onClose={() => setTriggering(false)} />}
          <ImportError dag={dag} />
          <TabLinks label={`Parts of ${dagId}`} tabs={TABS} selected={tab} />
          {tab === "overview" && <Overview dagId={dagId} />}
          {tab === "runs" && <RunsTab dagId={dagId} />}
          {tab === "tasks" && <TasksTab dagId={dagId} />}
          {tab === "code" && <CodeTab dag={dag} />}
          {tab === "audit" && <AuditTab dagId={dagId} />}
        </>
      )}
    </Loads>
  );
}
