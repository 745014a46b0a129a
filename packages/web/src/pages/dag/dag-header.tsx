/** Name, pause, schedule, version, owner and tags of a DAG. */
import { Link } from "@tanstack/react-router";
import { ChevronDown } from "lucide-react";
import { pauseCommand, pauseRequest, useSetPaused } from "../../actions/pause/use-pause.ts";
import { Twin } from "../../actions/twin.tsx";
import type { components } from "../../api/schema.gen.ts";
import { usePreferences } from "../../app/preferences.ts";
import { useNow } from "../../time/clock.ts";
import { exact, relative } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { Menu, MenuLabel } from "../../ui/menu.tsx";
import { Fact, PageHeader } from "../../ui/page.tsx";
import { Switch } from "../../ui/switch.tsx";

export type DagDetails = components["schemas"]["DAGDetailsResponse"];

export function DagHeader({
  dag,
  actions,
}: {
  readonly dag: DagDetails;
  readonly actions?: React.ReactNode;
}) {
  const setPaused = useSetPaused();
  const version = dag.latest_dag_version;
  return (
    <PageHeader
      title={dag.dag_id}
      heading={
        <>
          {dag.dag_id}
          <span className="inline-flex items-center gap-2 text-base font-normal tracking-normal text-muted">
            <Switch
              label={`Schedule of ${dag.dag_id}`}
              checked={!dag.is_paused}
              onChange={(on) => void setPaused(dag.dag_id, !on)}
            />
            {dag.is_stale ? "No longer in its file" : dag.is_paused ? "Paused" : "Active"}
            {dag.is_paused && dag.pause_reason !== null && (
              <span className="text-warn">{dag.pause_reason.replaceAll("_", " ")}</span>
            )}
            <Twin
              cli={pauseCommand([dag.dag_id], !dag.is_paused)}
              request={pauseRequest(dag.dag_id, !dag.is_paused)}
            />
          </span>
        </>
      }
      facts={
        <>
          <Schedule dag={dag} />
          {version !== null && (
            <Fact name="Version">
              v{version.version_number}, <Ago at={version.created_at} />
            </Fact>
          )}
          {dag.owners.length > 0 && <Fact name="Owner">{dag.owners.join(", ")}</Fact>}
          {dag.tags.length > 0 && (
            <span className="flex flex-wrap gap-1.5">
              {dag.tags.map(({ name }) => (
                <Link
                  key={name}
                  to={"/dags" as "/"}
                  search={{ tags: name } as never}
                  className="rounded-full border border-line px-2 text-sm hover:border-line-strong hover:text-text"
                >
                  {name}
                </Link>
              ))}
            </span>
          )}
          {dag.description !== null && <span className="max-w-xl truncate">{dag.description}</span>}
        </>
      }
      actions={actions}
    />
  );
}

/** The schedule in words, and a menu of the next dates. */
function Schedule({ dag }: { readonly dag: DagDetails }) {
  const runs = dag.next_runs;
  const next = dag.next_dagrun_run_after;
  return (
    <>
      <span className="text-text" title={dag.timetable_summary ?? undefined}>
        {dag.timetable_description ?? "No schedule"}
      </span>
      {dag.schedule_error !== null && <span className="text-danger">{dag.schedule_error.message}</span>}
      {next !== null && (
        <Fact name="Next run">
          {runs.length === 0 ? (
            <NextRun at={Date.parse(next)} />
          ) : (
            <Menu
              align="start"
              trigger={
                <button type="button" className="inline-flex items-center gap-1 hover:underline">
                  {dag.is_paused ? "paused" : <NextRun at={Date.parse(next)} />}
                  <ChevronDown aria-hidden className="size-3 text-muted" />
                </button>
              }
            >
              <NextDates runs={runs} zone={dag.timezone ?? "UTC"} isPaused={dag.is_paused} />
            </Menu>
          )}
        </Fact>
      )}
    </>
  );
}

/** A date in the past is one that the schedule has yet to catch up with. */
function NextRun({ at }: { readonly at: number }) {
  const now = useNow();
  return at > now ? <Ago at={at} /> : <span>due, {relative(at, now)}</span>;
}

function NextDates({
  runs,
  zone,
  isPaused,
}: {
  readonly runs: DagDetails["next_runs"];
  readonly zone: string;
  readonly isPaused: boolean;
}) {
  const now = useNow();
  const shown = usePreferences().zone;
  return (
    <>
      <MenuLabel>
        The next {runs.length} dates, in {zone}
        {isPaused && ", if the schedule is resumed"}
      </MenuLabel>
      <table className="mx-2 mb-1">
        <tbody>
          {runs.map(({ run_after }) => (
            <tr key={run_after}>
              <td className="pr-6 tabular-nums" title={exact(Date.parse(run_after), shown)}>
                {exact(Date.parse(run_after), zone)}
              </td>
              <td className="text-right text-muted tabular-nums">{relative(Date.parse(run_after), now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
