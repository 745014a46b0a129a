/** What happened to a DAG over time, and where? */
import { useParams } from "@tanstack/react-router";
import { Suspense } from "react";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { Loading, Loads } from "../../ui/panels.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { DagHeader } from "./dag-header.tsx";
import { Overview } from "./overview.tsx";

const TABS = [{ id: "overview", label: "Overview" }] as const;

export default function DagPage() {
  const { dagId } = useParams({ strict: false }) as { dagId: string };
  const [search] = useSearchState();
  const tab = TABS.find(({ id }) => id === textOf(search, "tab"))?.id ?? "overview";
  const details = $api.useQuery("get", "/api/v2/dags/{dag_id}/details", {
    params: { path: { dag_id: dagId } },
  });
  return (
    <Loads query={details}>
      {(dag) => (
        <>
          <DagHeader dag={dag} />
          <TabLinks label={`Parts of ${dagId}`} tabs={TABS} selected={tab} />
          <Suspense fallback={<Loading />}>
            <Overview dagId={dagId} />
          </Suspense>
        </>
      )}
    </Loads>
  );
}
