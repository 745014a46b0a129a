/** Which processes are alive, and how loaded are they? */
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { PageBody, PageHeader } from "../../ui/page.tsx";
import { Loads } from "../../ui/panels.tsx";
import { type Tab, TabLinks } from "../../ui/tabs.tsx";
import { Database } from "./database.tsx";
import { Executors } from "./executors.tsx";
import { Problems } from "./problems.tsx";
import { Services } from "./services.tsx";
import { serviceName } from "./system.ts";
import { Triggerers } from "./triggerers.tsx";
import { Workers } from "./workers.tsx";

const TABS = ["services", "executors", "workers", "triggerers", "database"] as const;

export default function SystemPage() {
  const [search] = useSearchState();
  const tab = TABS.find((each) => each === textOf(search, "tab")) ?? "services";
  const jobs = $api.useQuery("get", "/api/v2/jobs", {
    params: { query: { limit: 200, job_state: "running", order_by: ["-start_date"] } },
  });
  const executors = $api.useQuery("get", "/api/v2/executors");
  const workers = $api.useQuery("get", "/api/v2/workers", { params: { query: { limit: 200 } } });
  const health = $api.useQuery("get", "/api/v2/monitor/health");
  useReload("jobs", [
    "/api/v2/jobs",
    "/api/v2/executors",
    "/api/v2/workers",
    "/api/v2/monitor/health",
    "/ui/database",
  ]);
  const database = $api.useQuery("get", "/ui/database", {}, { enabled: tab === "database" });
  const triggerers = jobs.data?.jobs.filter(({ job_type }) => serviceName(job_type) === "Triggerer");
  const tabs: readonly Tab[] = [
    { id: "services", label: "Services", count: jobs.data?.total_entries },
    { id: "executors", label: "Executors", count: executors.data?.total_entries },
    { id: "workers", label: "Workers", count: workers.data?.total_entries },
    { id: "triggerers", label: "Triggerers", count: triggerers?.length },
    { id: "database", label: "Database" },
  ];
  return (
    <>
      <PageHeader title="System" />
      <TabLinks label="Parts of the system" tabs={tabs} selected={tab} />
      <PageBody>
        {health.data && <Problems health={health.data} executors={executors.data?.executors ?? []} />}
        {tab === "services" && <Loads query={jobs}>{(data) => <Services jobs={data.jobs} />}</Loads>}
        {tab === "executors" && (
          <Loads query={executors}>{(data) => <Executors executors={data.executors} />}</Loads>
        )}
        {tab === "workers" && <Loads query={workers}>{(data) => <Workers workers={data.workers} />}</Loads>}
        {tab === "triggerers" && (
          <Loads query={jobs}>
            {() => <Triggerers jobs={triggerers ?? []} health={health.data?.triggerer} />}
          </Loads>
        )}
        {tab === "database" && <Loads query={database}>{(state) => <Database state={state} />}</Loads>}
      </PageBody>
    </>
  );
}
