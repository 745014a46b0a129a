/** Every try of an instance, and every wait of it. */
import { Link } from "@tanstack/react-router";
import { $api } from "../../api/client.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { duration } from "../../time/format.ts";
import { Ago, Elapsed, Exact } from "../../time/time.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Facts } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { type Instance, type TaskAddress, type Try, useDeferrals } from "./task-data.ts";
import { placeOf } from "./task-header.tsx";

export function AttemptsTab({ tries }: { readonly tries: readonly Try[] }) {
  return (
    <ol className="flex max-w-3xl flex-col px-4 py-2">
      {tries.toReversed().map((each) => (
        <li key={each.try_number} className="border-b border-line py-3 last:border-b-0">
          <h2 className="mb-1.5 flex items-center gap-3">
            Try {each.try_number}
            <StateBadge state={each.state} />
            <Link
              to="."
              search={(before: Record<string, unknown>) => ({ ...before, tab: "log", try: each.try_number })}
              className="link ml-auto font-normal"
            >
              Log
            </Link>
          </h2>
          <Facts
            rows={[
              each.reason === null ? null : ["Reason", each.reason],
              ["Ready", <Exact key="ready" at={each.scheduled_when} />],
              ["Queued", <Exact key="queued" at={each.queued_when} />],
              ["Started", <Exact key="started" at={each.start_date} />],
              ["Ended", <Exact key="ended" at={each.end_date} fallback="not yet" />],
              ["Took", <Elapsed key="took" from={each.start_date} to={each.end_date} />],
              ["Waited for a slot", waited(each)],
              ["Ran on", placeOf(each)],
              ["Pool", `${each.pool}, ${each.pool_slots} ${each.pool_slots === 1 ? "slot" : "slots"}`],
              ["Version", each.dag_version === null ? "–" : `v${each.dag_version.version_number}`],
            ]}
          />
        </li>
      ))}
    </ol>
  );
}

function waited({ queued_when, scheduled_when, start_date }: Try): string {
  const from = queued_when ?? scheduled_when;
  return from === null || start_date === null ? "–" : duration(Date.parse(start_date) - Date.parse(from));
}

export function DeferralTab({
  address,
  instance,
}: {
  readonly address: TaskAddress;
  readonly instance: Instance;
}) {
  const deferrals = useDeferrals(address);
  return (
    <Loads query={deferrals}>
      {({ deferrals: found }) =>
        found.length === 0 ? (
          <Empty title="This task has not deferred">
            A task defers while it waits for a time, a signal, a file or an answer. It then holds no worker
            and no slot. Its waits are listed here.
          </Empty>
        ) : (
          <ol className="flex max-w-3xl flex-col px-4 py-2">
            {found.toReversed().map((each) => (
              <li key={`${each.trigger_id} ${each.deferred_at}`} className="border-b border-line py-3">
                <h2 className="mb-1.5 flex items-center gap-3">
                  <code>{each.name ?? each.kind}</code>
                  <span className="font-normal text-muted">try {each.try_number}</span>
                  {each.ended_at === null ? <StateBadge state="deferred" label="Waits" /> : each.end_kind}
                </h2>
                <Facts
                  rows={[
                    ["Trigger", <code key="kind">{each.kind}</code>],
                    ["Waits since", <Exact key="since" at={each.deferred_at} />],
                    ["Times out", <Ago key="until" at={each.timeout_at} fallback="never" />],
                    ["Fired", <Exact key="fired" at={each.fired_at} fallback="not yet" />],
                    ["Waited", <Elapsed key="waited" from={each.deferred_at} to={each.ended_at} />],
                    each.ended_at === null && instance.triggerer_job !== null
                      ? ["Triggerer", `${instance.triggerer_job.hostname} (job ${instance.triggerer_job.id})`]
                      : null,
                    each.ended_at === null
                      ? ["Last poll", <LastPoll key="poll" trigger={each.trigger_id} />]
                      : null,
                    each.ended_at === null && instance.trigger !== null
                      ? [
                          "Arguments",
                          <JsonTree key="args" value={parsed(instance.trigger.kwargs)} name="args" />,
                        ]
                      : null,
                    each.outcome === null ? null : ["Outcome", each.outcome],
                    each.reason === null ? null : ["Reason", each.reason],
                    each.payload === null || each.payload === undefined
                      ? null
                      : ["Event", <JsonTree key="event" value={each.payload} name="event" />],
                  ]}
                />
              </li>
            ))}
          </ol>
        )
      }
    </Loads>
  );
}

/** Also while nothing changes: a trigger whose poll is overdue is seen here. */
function LastPoll({ trigger }: { readonly trigger: number }) {
  const found = $api.useQuery(
    "get",
    "/api/v2/triggers/{trigger_id}",
    { params: { path: { trigger_id: trigger } } },
    { refetchInterval: 5_000 },
  );
  return <Ago at={found.data?.last_polled_at ?? null} fallback="none: the trigger does not poll" />;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
