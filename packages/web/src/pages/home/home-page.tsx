/** Is anything wrong right now? */
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import { useSearchState } from "../../app/search.ts";
import { duration } from "../../time/format.ts";
import { PageBody, PageTitle } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { Segmented } from "../../ui/tabs.tsx";
import { Attention } from "./attention.tsx";
import { Backfills } from "./backfills.tsx";
import { Components } from "./components.tsx";
import { Counts } from "./counts.tsx";
import type { Home } from "./home.ts";
import { PoolUse } from "./pool-use.tsx";
import { RunTimeline, shownFrom } from "./run-timeline.tsx";

const SPANS = [
  { value: "1", label: "1 h" },
  { value: "6", label: "6 h" },
  { value: "24", label: "24 h" },
  { value: "168", label: "7 d" },
] as const;

export default function HomePage() {
  const [search] = useSearchState();
  const hours = SPANS.find(({ value }) => value === String(search["hours"]))?.value ?? "24";
  const home = $api.useQuery(
    "get",
    "/ui/home",
    { params: { query: hours === "24" ? {} : { hours: Number(hours) } } },
    { placeholderData: (before) => before },
  );
  return (
    <>
      <PageTitle title="Home" />
      <PageBody className="px-4 pt-4 pb-6">
        <Loads query={home}>{(data) => <HomeContent home={data} hours={hours} />}</Loads>
      </PageBody>
    </>
  );
}

function HomeContent({
  home,
  hours,
}: {
  readonly home: Home;
  readonly hours: (typeof SPANS)[number]["value"];
}) {
  const [, setSearch] = useSearchState();
  const { timeline } = home;
  const from = useMemo(() => shownFrom(home), [home]);
  const hasRuns = timeline.dags.some(({ bars }) => bars.run_ids.length > 0);
  return (
    <div className="flex flex-col gap-5">
      <div className="overflow-hidden rounded-md border border-line bg-surface">
        <Counts home={home} />
        <Components home={home} />
      </div>
      <section aria-label="Runs">
        <div className="flex flex-wrap items-center gap-3 pb-1">
          <h2>
            Runs, last {SPANS.find(({ value }) => value === hours)!.label}
            {hasRuns && from > Date.parse(timeline.from) && (
              <span className="font-normal text-muted">
                : all in the last {duration(Date.parse(home.now) - from)}
              </span>
            )}
          </h2>
          <span className="text-sm text-muted">{timeline.dags.length} DAGs, failing ones first</span>
          {timeline.is_partial && (
            <span className="text-sm text-warn">Too many runs: only the newest are shown.</span>
          )}
          <div className="ml-auto">
            <Segmented
              label="Time shown"
              options={SPANS}
              value={hours}
              onChange={(value) => setSearch({ hours: value === "24" ? undefined : value })}
            />
          </div>
        </div>
        {timeline.dags.length === 0 ? (
          <Empty title="No run in this time" command="tradewind dags trigger <dag>">
            This timeline shows each run of a DAG as a bar, from its start to its end. Save a DAG into the DAG
            folder, or start a run:
          </Empty>
        ) : (
          <RunTimeline home={home} />
        )}
      </section>
      <div className="grid gap-x-8 gap-y-5 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
        <Attention home={home} />
        <div className="flex flex-col gap-5">
          <PoolUse home={home} />
          <Backfills home={home} />
        </div>
      </div>
    </div>
  );
}
