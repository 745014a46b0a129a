import { Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { requireNamed } from "../../client/named-filter.ts";
import { CliError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { parseInstant, parseJson, readSource, wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";

interface TaskReference {
  readonly dag_id: string;
  readonly task_id: string;
}

interface Asset {
  readonly id: number;
  readonly uri: string;
  readonly group: string;
  readonly description: string | null;
  readonly scheduled_dags: readonly { readonly dag_id: string }[];
  readonly producing_tasks: readonly TaskReference[];
  readonly consuming_tasks: readonly TaskReference[];
  readonly aliases: readonly { readonly name: string }[];
  readonly last_asset_event: { readonly timestamp: string | null } | null;
}

interface AssetEvent {
  readonly id: number;
  readonly uri: string;
  readonly payload: unknown;
  readonly partition_key: string | null;
  readonly source_dag_id: string | null;
  readonly source_run_id: string | null;
  readonly source_task_id: string | null;
  readonly created_dagruns: readonly { readonly dag_id: string; readonly run_id: string }[];
  readonly sender: string;
  readonly timestamp: string;
}

interface Queued {
  readonly dag_id: string;
  readonly events: number;
}

export function command(session: Session) {
  const assets = new Command("assets")
    .description("list assets and their events, send events")
    .addHelpText("after", examples("tradewind assets list", "tradewind assets events s3://lake/orders"));
  addList(assets, session);
  addShow(assets, session);
  addEvents(assets, session);
  addSend(assets, session);
  return assets;
}

function addList(assets: Command, session: Session): void {
  assets
    .command("list")
    .description("list assets")
    .addHelpText("after", examples("tradewind assets list orders", "tradewind assets list --dag etl"))
    .argument("[text]", "only assets whose URI contains this text")
    .option("--dag <id>", "only assets used by this DAG")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async (text, { dag, limit }) => {
      const what = "cannot list the assets";
      const listed = await session.client.list<Asset>({
        path: "/assets",
        key: "assets",
        what,
        query: { uri_pattern: text, dag_ids: dag, order_by: "uri" },
        limit,
      });
      await requireNamed(session.client, what, listed, { dag });
      await session.printList(listed, ASSET_COLUMNS, "No assets match.");
    });
}

function addShow(assets: Command, session: Session): void {
  assets
    .command("show")
    .description("show an asset: producers, consumers and events not consumed yet")
    .addHelpText("after", examples("tradewind assets show s3://lake/orders"))
    .argument("<uri>")
    .action(async (uri) => {
      const asset = await find(session, uri);
      const { queued_events: queued } = await session.client.get<{ queued_events: Queued[] }>(
        path`/assets/${asset.id}/queuedEvents`,
        { what: `cannot show the asset ${uri}` },
      );
      await session.printObject({ ...asset, queued_events: queued }, [
        ["Asset", asset.uri],
        ["Group", asset.group],
        ["Description", asset.description],
        ["Produced by", asset.producing_tasks.map(taskName).join(", ")],
        ["Read by", asset.consuming_tasks.map(taskName).join(", ")],
        ["Schedules", asset.scheduled_dags.map(({ dag_id }) => dag_id).join(", ")],
        ["Aliases", asset.aliases.map(({ name }) => name).join(", ")],
        ["Last event", lastEvent(asset)],
        ["Queued", queued.map(({ dag_id, events }) => `${events} for ${dag_id}`).join(", ")],
      ]);
    });
}

function addEvents(assets: Command, session: Session): void {
  assets
    .command("events")
    .description("list events of assets, newest first")
    .addHelpText("after", examples("tradewind assets events s3://lake/orders --since 2026-01-31"))
    .argument("[uri]", "only events of this asset")
    .option("--dag <id>", "only events from tasks of this DAG")
    .option("--partition <key>", "only events of this partition")
    .option("--since <time>", "only events since this time", parseInstant)
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async (uri, { dag, limit, partition, since }) => {
      if (uri !== undefined) await find(session, uri);
      const what = "cannot list the events";
      const listed = await session.client.list<AssetEvent>({
        path: "/assets/events",
        key: "asset_events",
        what,
        query: {
          uri,
          source_dag_id: dag,
          partition_key: partition,
          timestamp_gte: since,
          order_by: "-timestamp",
        },
        limit,
      });
      await requireNamed(session.client, what, listed, { dag });
      await session.printList(listed, EVENT_COLUMNS, "No events match.");
    });
}

function addSend(assets: Command, session: Session): void {
  assets
    .command("send")
    .description("send an event of an asset, created if it does not exist")
    .addHelpText(
      "after",
      examples(
        `tradewind assets send s3://lake/orders '{"rows": 120}'`,
        "tradewind assets send s3://lake/orders --partition 2026-01-31",
      ),
    )
    .argument("<uri>")
    .argument("[payload]", "payload: JSON, @file, or @- for stdin (default: null)")
    .option("--partition <key>", "partition of the asset (default: the whole asset)")
    .option("--idempotency-key <key>", "send at most one event with this key")
    .action(async (uri, payload, { idempotencyKey, partition }) => {
      const source = payload === undefined ? undefined : readSource(payload, "the payload");
      const event = await session.client.post<AssetEvent>("/assets/events", {
        what: `cannot send an event of the asset ${uri}`,
        body: {
          uri,
          payload: source === undefined ? null : parseJson(source.text, source.name),
          partition_key: partition ?? null,
        },
        idempotent: idempotencyKey ?? true,
      });
      await session.printDone(event, `Event ${event.id} of ${uri} sent.`);
    });
}

async function find(session: Session, uri: string): Promise<Asset> {
  const { assets } = await session.client.get<{ assets: Asset[] }>("/assets", {
    what: `cannot show the asset ${uri}`,
    query: { uri, only_active: "false" },
  });
  if (assets[0] !== undefined) return assets[0];
  throw new CliError("TW_CLI_NO_SUCH_ASSET", `asset ${uri} does not exist.`, {
    exit: EXIT.notFound,
    remedy: "`tradewind assets list` lists the assets",
  });
}

function taskName({ dag_id, task_id }: TaskReference): string {
  return `${dag_id}.${task_id}`;
}

function lastEvent({ last_asset_event: last }: Asset): string {
  return last?.timestamp == null ? "none" : relativeTime(last.timestamp);
}

function sourceOf(event: AssetEvent): string {
  const { sender, source_dag_id, source_run_id, source_task_id } = event;
  return source_dag_id === null ? sender : `${source_dag_id}.${source_task_id} ${source_run_id}`;
}

const ASSET_COLUMNS: readonly Column<Asset>[] = [
  { title: "ASSET", value: ({ uri }) => uri },
  { title: "GROUP", value: ({ group }) => group, optional: true },
  { title: "PRODUCED BY", value: ({ producing_tasks: tasks }) => tasks.map(taskName).join(", ") },
  { title: "SCHEDULES", value: ({ scheduled_dags: dags }) => dags.map(({ dag_id }) => dag_id).join(", ") },
  { title: "LAST EVENT", value: lastEvent },
];

const EVENT_COLUMNS: readonly Column<AssetEvent>[] = [
  { title: "ID", value: ({ id }) => String(id), align: "right" },
  { title: "ASSET", value: ({ uri }) => uri },
  { title: "WHEN", value: ({ timestamp }) => relativeTime(timestamp) },
  { title: "PARTITION", value: ({ partition_key }) => partition_key ?? "", optional: true },
  { title: "FROM", value: sourceOf },
  { title: "RUNS", value: ({ created_dagruns: runs }) => String(runs.length), align: "right" },
  { title: "PAYLOAD", value: ({ payload }) => JSON.stringify(payload), flexible: true },
];
