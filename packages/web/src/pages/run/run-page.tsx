/** A run: where its time went, what its tasks do, and what can be done with it. */
import { useParams } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useState } from "react";
import { commandOf } from "../../actions/command-text.ts";
import { Note } from "../../actions/note.tsx";
import { type RunAction, RunActionDialog } from "../../actions/run-actions.tsx";
import { usePreferences } from "../../app/preferences.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { Ago } from "../../time/time.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.tsx";
import { Menu, MenuItem, MenuLine } from "../../ui/menu.tsx";
import { PageBody, PageHeader } from "../../ui/page.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Loads } from "../../ui/panels.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { RUN, type Run, type RunAddress, runName, TIMELINE, useRun, useTimeline } from "./run-data.ts";
import { RunGraph } from "./run-graph.tsx";
import { RunHeader } from "./run-header.tsx";
import { RunConf, RunEvents, RunOutputs } from "./run-tabs.tsx";
import { RunTasks } from "./run-tasks.tsx";
import { RunTimeline } from "./run-timeline.tsx";
import { TaskPane } from "./task-pane.tsx";

export default function RunPage() {
  const { dagId, runId } = useParams({ strict: false }) as { dagId: string; runId: string };
  const address = { dagId, runId };
  const run = useRun(address);
  return <Loads query={run}>{(found) => <OneRun address={address} run={found} />}</Loads>;
}

function OneRun({ address, run }: { readonly address: RunAddress; readonly run: Run }) {
  const [search, setSearch] = useSearchState();
  const { zone } = usePreferences();
  const [action, setAction] = useState<RunAction | null>(null);
  const tab = textOf(search, "tab") ?? "timeline";
  const timeline = useTimeline(address, textOf(search, "compare") !== undefined);
  useReload(`run:${address.dagId}/${address.runId}`, [
    RUN,
    TIMELINE,
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/{map_index}/why",
  ]);
  const isOver = run.state === "success" || run.state === "failed";
  const task = timeline.data?.tasks.find(({ taskId }) => taskId === textOf(search, "task"));
  const tabs = [
    { id: "timeline", label: "Timeline" },
    { id: "graph", label: "Graph" },
    { id: "tasks", label: "Tasks", count: run.progress?.total },
    { id: "events", label: "Events" },
    { id: "outputs", label: "Outputs" },
    { id: "conf", label: "Conf" },
  ];
  return (
    <>
      <PageHeader
        title={`${run.dag_id} ${runName(run, zone)}`}
        heading={
          <>
            <span title={run.dag_run_id}>
              {run.dag_id} · {runName(run, zone)}
            </span>
            <span className="text-base font-normal">
              <StateBadge state={run.state} />
            </span>
            <span className="text-base font-normal text-muted">
              <Ago at={run.end_date ?? run.start_date ?? run.queued_at} fallback="" />
            </span>
          </>
        }
        facts={<Note of={address} note={run.note} />}
        actions={
          <>
            {run.state === "failed" && (
              <Button kind="primary" onClick={() => setAction("retry")}>
                Run failed tasks again…
              </Button>
            )}
            <Button onClick={() => setAction("clear")}>Clear tasks…</Button>
            <Button onClick={() => setAction("mark")}>Mark run as…</Button>
            {!isOver && (
              <Button kind="danger" onClick={() => setAction("cancel")}>
                Cancel run…
              </Button>
            )}
            <Menu
              trigger={
                <IconButton label="More actions" kind="plain">
                  <Ellipsis />
                </IconButton>
              }
            >
              <MenuItem
                onSelect={() =>
                  void copyText(
                    commandOf("tradewind", "runs", "show", run.dag_id, run.dag_run_id, "--timeline"),
                  )
                }
              >
                Copy the CLI command
              </MenuItem>
              <MenuItem onSelect={() => void copyText(location.href)}>Copy link</MenuItem>
              <MenuLine />
              <MenuItem danger disabled={!isOver} onSelect={() => setAction("delete")}>
                Delete run…
              </MenuItem>
            </Menu>
          </>
        }
      />
      <RunHeader run={run} timeline={timeline.data} />
      <TabLinks tabs={tabs} selected={tab} label="Views of this run" />
      <div className="relative flex min-h-0 flex-1">
        {tab === "timeline" && (
          <Loads query={timeline}>{(found) => <RunTimeline address={address} timeline={found} />}</Loads>
        )}
        {tab === "graph" && <Loads query={timeline}>{(found) => <RunGraph timeline={found} />}</Loads>}
        {tab === "tasks" && <RunTasks address={address} />}
        {tab === "events" && (
          <PageBody>
            <RunEvents address={address} />
          </PageBody>
        )}
        {tab === "outputs" && (
          <PageBody>
            <RunOutputs address={address} />
          </PageBody>
        )}
        {tab === "conf" && (
          <PageBody>
            <RunConf run={run} />
          </PageBody>
        )}
        {(tab === "timeline" || tab === "graph") && task !== undefined && timeline.data !== undefined && (
          <Pane title={task.taskId} onClose={() => setSearch({ task: undefined })}>
            <TaskPane key={task.taskId} address={address} timeline={timeline.data} task={task} />
          </Pane>
        )}
      </div>
      {action !== null && (
        <RunActionDialog
          action={action}
          runs={[{ ...address, state: run.state }]}
          onClose={() => setAction(null)}
        />
      )}
    </>
  );
}
