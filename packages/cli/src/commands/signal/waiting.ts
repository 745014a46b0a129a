import { Command } from "@commander-js/extra-typings";
import type { Listed } from "../../client/client.ts";
import { findRunFilter, RUN_ARGUMENT } from "../../client/find-run.ts";
import { requireNamed } from "../../client/named-filter.ts";
import type { TriggerRunner, Wait } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { instanceColumns } from "../../output/instance-name.ts";
import type { Column } from "../../output/table.ts";
import { relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";

interface WaitPage {
  readonly waiting: readonly Wait[];
  readonly total_entries: number | null;
  readonly next_cursor: string | null;
}

const PAGE = 1000;
/** Enough to tell what a task waits for; the triggerer and the time of its last poll are left out first. */
const ARGUMENTS_WIDTH = 40;
const WHAT = "cannot list the waiting tasks";

export function command(session: Session) {
  return new Command("waiting")
    .description("list waiting tasks and schedules, longest wait first")
    .addHelpText("after", examples("tradewind waiting", "tradewind waiting --dag etl --kind file"))
    .option("--dag <dag>", "only tasks of this DAG")
    .option("--run <run>", `only tasks of this run: ${RUN_ARGUMENT}`)
    .option("--task <task>", "only this task")
    .option("--kind <kind>", "only waits for triggers of this kind")
    .option("--trigger <id>", "only waits for this trigger", wholeNumber(1))
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ dag, kind, limit, run: given, task, trigger }) => {
      const run = await findRunFilter(session.client, { dag, run: given });
      const query = { dag_id: dag, run_id: run, task_id: task, kind, trigger_id: trigger };
      const waits = await read(session, query, limit);
      await requireNamed(session.client, WHAT, waits, { dag, run, task });
      await session.printList(waits, waitColumns(waits.items, "many triggers"), "Nothing waits.");
    });
}

/** Each page continues after the last entry: there may be a million entries, and they disappear while they are read. */
async function read(
  { client }: Session,
  filter: Readonly<Record<string, string | number | undefined>>,
  limit: number,
): Promise<Listed<Wait>> {
  if (limit !== 0) {
    return client.list<Wait>({ path: "/waiting", key: "waiting", what: WHAT, query: filter, limit });
  }
  const items: Wait[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: WaitPage = await client.get<WaitPage>("/waiting", {
      what: WHAT,
      query: { ...filter, order_by: "trigger_id", cursor, limit: PAGE },
    });
    items.push(...page.waiting);
    cursor = page.next_cursor;
  }
  items.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
  return { items, total: items.length };
}

export function runnerName({ hostname, id, is_alive }: TriggerRunner): string {
  return `${id}${hostname ? ` on ${hostname}` : ""}${is_alive === false ? " (dead)" : ""}`;
}

/** Waits for several triggers name theirs; waits for one trigger do not repeat it. */
export function waitColumns(
  waits: readonly Wait[],
  of: "many triggers" | "one trigger",
): readonly Column<Wait>[] {
  const all: readonly Column<Wait>[] = [
    ...instanceColumns(waits),
    { title: "DAG", value: ({ dag_id }) => dag_id, heading: true },
    { title: "RUN", value: ({ dag_run_id }) => dag_run_id, heading: true },
    { title: "SINCE", value: ({ since }) => relativeTime(since) },
    { title: "UNTIL", value: ({ until }) => relativeTime(until) },
  ];
  if (of === "one trigger") return all;
  return [
    ...all,
    { title: "ON", value: ({ kind }) => kind },
    {
      title: "TRIGGERER",
      value: ({ trigger_state, triggerer }) => (triggerer ? runnerName(triggerer) : trigger_state),
      optional: true,
    },
    { title: "POLLED", value: ({ last_polled_at }) => relativeTime(last_polled_at), optional: true },
    { title: "ARGUMENTS", value: ({ args_text }) => args_text, flexible: ARGUMENTS_WIDTH },
  ];
}
