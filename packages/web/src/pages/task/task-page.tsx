/** A task instance: what it said, why it failed or does not run, what it received and returned. */
import { useParams } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useState } from "react";
import { instanceLabel } from "../../actions/instance-list.tsx";
import { Note } from "../../actions/note.tsx";
import { ClearTasks, MarkTasks } from "../../actions/task-actions.tsx";
import { ApiProblem } from "../../api/problem.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { LogView } from "../../log/log-view.tsx";
import { useTaskLog } from "../../log/use-task-log.ts";
import { StateBadge, StateGlyph } from "../../state/glyph.tsx";
import { isFinished } from "../../state/states.ts";
import { Ago } from "../../time/time.tsx";
import { worst } from "../../timeline/timeline-rows.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.tsx";
import { Menu, MenuItem } from "../../ui/menu.tsx";
import { PageBody, PageHeader } from "../../ui/page.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Failure, Loading, Loads } from "../../ui/panels.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { AttemptsTab, DeferralTab } from "./attempts-tab.tsx";
import { AuditTab, CodeTab } from "./code-tab.tsx";
import { FailurePane } from "./failure-pane.tsx";
import { MappedList } from "./mapped-list.tsx";
import { OutputsTab } from "./outputs-tab.tsx";
import {
  type Instance,
  type TaskAddress,
  type Try,
  useDagTask,
  useInstance,
  useTries,
  useWhy,
} from "./task-data.ts";
import { TaskHeader } from "./task-header.tsx";
import { WhyTab } from "./why-tab.tsx";

const TABS = [
  { id: "log", label: "Log" },
  { id: "why", label: "Why" },
  { id: "io", label: "Inputs & outputs" },
  { id: "attempts", label: "Attempts" },
  { id: "deferral", label: "Deferral" },
  { id: "code", label: "Code" },
  { id: "audit", label: "Audit" },
] as const;

const INSTANCE = "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}";
const RELOADED = [
  `${INSTANCE}/{map_index}`,
  `${INSTANCE}/{map_index}/tries`,
  `${INSTANCE}/{map_index}/why`,
  `${INSTANCE}/{map_index}/deferrals`,
  `${INSTANCE}/listMapped`,
  "/ui/dags/{dag_id}/runs/{dag_run_id}/timeline",
];

export default function TaskPage() {
  const { dagId, runId, taskId } = useParams({ strict: false }) as {
    dagId: string;
    runId: string;
    taskId: string;
  };
  const [search] = useSearchState();
  const map = Number(textOf(search, "map") ?? -1);
  const address = { dagId, runId, taskId, mapIndex: Number.isInteger(map) ? map : -1 };
  const instance = useInstance(address, true);
  // At the same time, for the page of the instance.
  useTries(address, true);
  const task = useDagTask(address);
  useReload(`run:${dagId}/${runId}`, RELOADED);
  const isAbsent = instance.error instanceof ApiProblem && instance.error.status === 404;
  if (isAbsent && address.mapIndex < 0)
    return <WholeTask address={address} isMapped={task.data?.is_mapped ?? null} error={instance.error} />;
  return <Loads query={instance}>{(found) => <OneInstance address={address} instance={found} />}</Loads>;
}

/** A mapped task without an index, or a task of a run that has not started. */
function WholeTask({
  address,
  isMapped,
  error,
}: {
  readonly address: TaskAddress;
  readonly isMapped: boolean | null;
  readonly error: unknown;
}) {
  const [search] = useSearchState();
  const tab = textOf(search, "tab") ?? (isMapped ? "instances" : "why");
  const [dialog, setDialog] = useState<"clear" | "mark" | null>(null);
  const why = useWhy(address);
  if (isMapped === null) return <Loading />;
  const states = new Set(why.data?.instances?.map(({ state }) => state) ?? []);
  const whole = [{ ...address, mapIndex: null }];
  const tabs = [
    ...(isMapped ? [{ id: "instances", label: "Instances" }] : []),
    ...TABS.filter(({ id }) => id === "why" || id === "code" || id === "audit"),
  ];
  return (
    <>
      <PageHeader
        title={`${address.taskId} · ${address.dagId}`}
        heading={
          <>
            <StateGlyph state={worst(states)} size={20} /> {address.taskId}
            <span className="text-base font-normal text-muted">
              {isMapped ? "mapped task" : "has not started"}
            </span>
          </>
        }
        actions={
          <>
            <Button onClick={() => setDialog("clear")}>Clear…</Button>
            <Button onClick={() => setDialog("mark")}>Mark as…</Button>
          </>
        }
      />
      <TabLinks tabs={tabs} selected={tab} label="Views of this task" />
      {tab === "instances" ? (
        <div className="flex min-h-0 flex-1 flex-col pt-2">
          <MappedList address={address} />
        </div>
      ) : (
        <PageBody>
          {tab === "why" && <WhyTab address={address} />}
          {tab === "code" && <CodeTab address={address} version={null} />}
          {tab === "audit" && <AuditTab address={address} />}
          {!tabs.some(({ id }) => id === tab) && <Failure error={error} />}
        </PageBody>
      )}
      {dialog === "clear" && <ClearTasks tasks={whole} onClose={() => setDialog(null)} />}
      {dialog === "mark" && <MarkTasks tasks={whole} onClose={() => setDialog(null)} />}
    </>
  );
}

function OneInstance({ address, instance }: { readonly address: TaskAddress; readonly instance: Instance }) {
  const tries = useTries(address, true);
  return (
    <Loads query={tries}>
      {({ task_instances: found }) => <InstancePage address={address} instance={instance} tries={found} />}
    </Loads>
  );
}

type Dialog =
  | { readonly kind: "clear"; readonly latest: boolean }
  | { readonly kind: "mark"; readonly state: "success" | "skipped" | "failed" };

function InstancePage({
  address,
  instance,
  tries,
}: {
  readonly address: TaskAddress;
  readonly instance: Instance;
  readonly tries: readonly Try[];
}) {
  const [search, setSearch] = useSearchState();
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const hasStarted = tries.some(({ start_date }) => start_date !== null);
  const tab = textOf(search, "tab") ?? (hasStarted ? "log" : "why");
  const latest = Math.max(1, instance.try_number);
  // A try that has not started has no log: until then, the one before it is shown.
  const started = tries.findLast(({ start_date }) => start_date !== null)?.try_number ?? latest;
  const selectedTry = Math.min(latest, Math.max(1, Number(textOf(search, "try") ?? started) || started));
  const shown = tries.find(({ try_number }) => try_number === selectedTry) ?? instance;
  const log = useTaskLog({ ...address, tryNumber: selectedTry });
  const isFailure = shown.state === "failed" || shown.state === "upstream_failed";
  const wantsPane = textOf(search, "details");
  const hasPane =
    isFailure && tab === "log" && (wantsPane === "1" || (wantsPane === undefined && innerWidth >= 1_024));
  const tasks = [{ ...address, mapIndex: address.mapIndex < 0 ? null : address.mapIndex }];
  const label = instanceLabel(instance);
  const cli = `tradewind tasks logs ${address.dagId} ${address.runId} ${address.taskId}${address.mapIndex < 0 ? "" : ` --map-index ${address.mapIndex}`} --try ${selectedTry}`;
  return (
    <>
      <PageHeader
        title={`${label} · ${address.dagId}`}
        heading={
          <>
            <StateGlyph state={instance.state} size={20} />
            <span>{label}</span>
            <span className="text-base font-medium">
              <StateWord instance={instance} />
            </span>
            <span className="text-base font-normal text-muted">
              <Ago at={instance.end_date ?? instance.start_date ?? instance.scheduled_when} fallback="" />
            </span>
          </>
        }
        facts={<Note of={address} note={instance.note} />}
        actions={
          <>
            <Button onClick={() => setDialog({ kind: "clear", latest: false })}>Clear…</Button>
            <Button onClick={() => setDialog({ kind: "mark", state: "success" })}>Mark as…</Button>
            <Menu
              trigger={
                <IconButton label="More actions" kind="plain">
                  <Ellipsis />
                </IconButton>
              }
            >
              <MenuItem onSelect={() => void copyText(cli)}>Copy the CLI command for this log</MenuItem>
              <MenuItem onSelect={() => void copyText(location.href)}>Copy link</MenuItem>
              {address.mapIndex >= 0 && (
                <MenuItem onSelect={() => setSearch({ map: undefined, try: undefined, line: undefined })}>
                  All instances of {address.taskId}
                </MenuItem>
              )}
              {isFailure && (
                <MenuItem onSelect={() => setSearch({ tab: "log", details: "1" })}>
                  Show why it failed
                </MenuItem>
              )}
            </Menu>
          </>
        }
      />
      <TaskHeader address={address} instance={instance} tries={tries} selected={shown} />
      <TabLinks tabs={TABS} selected={tab} label="Views of this task" />
      <div className="relative flex min-h-0 flex-1">
        {tab === "log" ? (
          <div className="flex min-h-0 min-w-0 flex-1">
            <LogView
              key={`${address.taskId} ${address.mapIndex} ${selectedTry}`}
              model={log.model}
              search={log.search}
              fileName={`${address.dagId}-${label}-try-${selectedTry}.log`}
              emptyText={
                isFinished(shown.state)
                  ? "This try has written nothing."
                  : "Nothing was written yet. New lines appear here."
              }
            />
          </div>
        ) : (
          <PageBody>
            {tab === "why" && <WhyTab address={address} />}
            {tab === "io" && <OutputsTab address={address} state={instance.state} />}
            {tab === "attempts" && <AttemptsTab tries={tries} />}
            {tab === "deferral" && <DeferralTab address={address} instance={instance} />}
            {tab === "code" && (
              <CodeTab address={address} version={instance.dag_version?.version_number ?? null} />
            )}
            {tab === "audit" && <AuditTab address={address} />}
          </PageBody>
        )}
        {hasPane && (
          <Pane title={<StateBadge state={shown.state} />} onClose={() => setSearch({ details: "0" })}>
            <FailurePane
              address={address}
              attempt={shown}
              isFailed={instance.state === "failed" || instance.state === "upstream_failed"}
              model={log.model}
              onClear={(latestVersion) => setDialog({ kind: "clear", latest: latestVersion })}
              onMark={(state) => setDialog({ kind: "mark", state })}
            />
          </Pane>
        )}
      </div>
      {dialog?.kind === "clear" && (
        <ClearTasks tasks={tasks} latestVersion={dialog.latest} onClose={() => setDialog(null)} />
      )}
      {dialog?.kind === "mark" && (
        <MarkTasks tasks={tasks} state={dialog.state} onClose={() => setDialog(null)} />
      )}
    </>
  );
}

const WORD_COLORS: Readonly<Record<string, string>> = {
  failed: "text-danger",
  upstream_failed: "text-danger",
  running: "text-accent",
  deferred: "text-wait",
};

function StateWord({ instance }: { readonly instance: Instance }) {
  const word = (instance.state ?? "not started").replaceAll("_", " ");
  return (
    <span className={WORD_COLORS[instance.state ?? ""] ?? "text-text"}>
      {word.charAt(0).toUpperCase() + word.slice(1)}
    </span>
  );
}
