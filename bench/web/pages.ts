/** The addresses of all pages, for a DAG with a run "r<n>" of tasks "step_<n>_of_the_pipeline". */
export function pagesOf(dagId: string, runId: string): string[] {
  const dag = `/dags/${dagId}`;
  const run = `${dag}/runs/${runId}`;
  return [
    "/",
    "/dags",
    dag,
    `${dag}?view=graph`,
    `${dag}?view=calendar`,
    `${dag}?run=${runId}`,
    `${dag}?tab=runs`,
    `${dag}?tab=tasks`,
    `${dag}?tab=code`,
    `${dag}?tab=audit`,
    run,
    `${run}?tab=graph`,
    `${run}?tab=tasks`,
    `${run}?tab=events`,
    `${run}?tab=outputs`,
    `${run}/tasks/step_0_of_the_pipeline`,
    `${run}/tasks/step_0_of_the_pipeline?tab=why`,
    "/runs",
    "/waiting",
    "/approvals",
    "/signals",
    "/assets",
    "/backfills",
    "/pools",
    "/connections",
    "/variables",
    "/system",
    "/errors",
    "/audit",
    "/settings",
    "/reference",
  ];
}
