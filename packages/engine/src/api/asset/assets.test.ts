/** `/assets`: Airflow's paths and JSON for assets and their events. */
import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { setAssets } from "../../store/asset/asset-publish.ts";
import { setSignalSchedules } from "../../store/signal/signal-schedules-publish.ts";

let tw: Installation;

const asset = (uri: string) => ({ kind: "asset" as const, uri, group: "shop", description: "what is sold" });
const daily = { kind: "alias" as const, name: "daily", group: "asset" };
const leaf = (key: string, where: { alias: string } | null = null) =>
  ({ kind: "signal", namespace: "asset", key, where, equals: null, inRun: false }) as const;

beforeAll(async () => {
  tw = await Installation.open();
  const manifests = [
    manifestOf("sell", [{ taskId: "export", produces: [asset("s3://orders"), daily] }]),
    manifestOf("resell", [{ taskId: "export", produces: [asset("s3://copies")] }]),
    manifestOf("copy", [
      { taskId: "copy", produces: [asset("s3://copies")], consumes: [asset("s3://orders")] },
    ]),
    manifestOf("report", [{ taskId: "sum" }], {
      schedule: {
        kind: "signal",
        when: { kind: "any", of: [leaf("s3://orders"), leaf("*", { alias: "daily" })] },
        route: null,
        gather: { each: "batch", partitioned: true, assets: [asset("s3://orders"), daily] },
      },
    }),
  ];
  for (const manifest of manifests) await tw.addDag(manifest);
  await tw.database.transaction(async (tx) => {
    await setSignalSchedules(tx, manifests);
    await setAssets(tx, manifests);
  });
});

const get = async (path: string) => (await tw.call("GET", path)).json();
const send = (body: unknown, headers = {}) => tw.call("POST", "/assets/events", body, headers);
const idOf = async (uri: string): Promise<number> =>
  (await get(`/assets?uri=${encodeURIComponent(uri)}`)).assets[0].id;

test("lists assets with their producers and consumers", async () => {
  const { assets, total_entries } = await get("/assets?order_by=-uri");
  expect(total_entries).toBe(2);
  expect(assets[0]).toMatchObject({
    uri: "s3://orders",
    name: "s3://orders",
    group: "shop",
    description: "what is sold",
    scheduled_dags: [{ dag_id: "report" }],
    producing_tasks: [{ dag_id: "sell", task_id: "export" }],
    consuming_tasks: [{ dag_id: "copy", task_id: "copy" }],
    aliases: [],
    watchers: [],
    last_asset_event: null,
  });
  expect(await get(`/assets/${assets[0].id}`)).toEqual(assets[0]);
  expect((await get("/assets?dag_ids=copy&uri_pattern=COP")).assets).toHaveLength(1);
  expect((await get("/assets?name_prefix_pattern=s3://o")).assets).toHaveLength(1);
  const { asset_aliases } = await get("/assets/aliases");
  expect(asset_aliases).toMatchObject([{ name: "daily", group: "asset" }]);
  expect(await get(`/assets/aliases/${asset_aliases[0].id}`)).toEqual(asset_aliases[0]);
  const gone = await tw.call("GET", "/assets/4711");
  expect([gone.statusCode, gone.json().detail]).toEqual([
    404,
    expect.stringContaining("Asset 4711 does not exist"),
  ]);
});

describe("events sent over the API", () => {
  test("stores an event once per idempotency key", async () => {
    const body = { asset_id: await idOf("s3://orders"), extra: { rows: 7 }, partition_key: "mon" };
    const first = await send(body, { "idempotency-key": "one" });
    expect(first.statusCode).toBe(200);
    expect(first.json()).toMatchObject({
      uri: "s3://orders",
      extra: { rows: 7 },
      payload: { rows: 7 },
      partition_key: "mon",
      source_dag_id: null,
      source_map_index: -1,
      created_dagruns: [],
    });
    expect((await send(body, { "idempotency-key": "one" })).json()).toEqual(first.json());
    const events = await get("/assets/events?uri=s3://orders");
    expect(events).toMatchObject({ total_entries: 1, asset_events: [{ id: first.json().id }] });
    expect(tw.changes).toContainEqual({ kind: "signal_sent", key: "s3://orders" });
    const [signal] = await tw.sql<{ value: object }>("SELECT value FROM signal WHERE id = $1", [
      first.json().id,
    ]);
    expect(signal!.value).toMatchObject({ payload: { rows: 7 }, partition: "mon", source: null });
  });

  test("creates an unknown asset given by its URI", async () => {
    const made = (await send({ uri: "s3://new", payload: 3 })).json();
    expect(made).toMatchObject({ uri: "s3://new", extra: null, payload: 3 });
    expect(await get(`/assets/${made.asset_id}`)).toMatchObject({ last_asset_event: { id: made.id } });
  });

  test.each([
    [{}, 422, "asset_id or uri"],
    [{ asset_id: 1, uri: "s3://a" }, 422, "asset_id or uri"],
    [{ asset_id: 4711 }, 404, "Asset 4711 does not exist"],
    [{ uri: "s3://*" }, 422, "must not contain"],
    [{ uri: "s3://a", extra: {}, payload: 1 }, 422, "either extra or payload"],
    [{ uri: "s3://a", payload: "x".repeat(70_000) }, 422, "at most 65536"],
  ])("rejects %o", async (body, status, words) => {
    const refused = await send(body);
    expect([refused.statusCode, JSON.stringify(refused.json())]).toEqual([
      status,
      expect.stringContaining(words),
    ]);
  });
});

test("queues events until a run consumes them or they are deleted", async () => {
  const orders = await idOf("s3://orders");
  const { queued_events } = await get("/dags/report/assets/queuedEvents");
  expect(queued_events).toMatchObject([{ dag_id: "report", asset_id: orders, events: 1 }]);
  expect(await get(`/assets/${orders}/queuedEvents`)).toMatchObject({ total_entries: 1 });
  const one = `/dags/report/assets/${orders}/queuedEvents`;
  expect(await get(one)).toMatchObject({ dag_id: "report", asset_id: orders, events: 1 });
  expect((await tw.call("GET", `${one}?before=2001-01-01`)).statusCode).toBe(404);
  expect((await tw.call("DELETE", "/dags/sell/assets/queuedEvents")).statusCode).toBe(404);
  expect((await tw.call("DELETE", "/dags/report/assets/queuedEvents")).statusCode).toBe(204);
  expect(await get("/dags/report/assets/queuedEvents")).toMatchObject({ total_entries: 0 });
});

test("materializes an asset by a run of the only DAG that produces it", async () => {
  const made = await tw.call("POST", `/assets/${await idOf("s3://orders")}/materialize`, { conf: { x: 1 } });
  expect(made.json()).toMatchObject({ dag_id: "sell", run_type: "manual", conf: { x: 1 } });
  const several = await tw.call("POST", `/assets/${await idOf("s3://copies")}/materialize`);
  expect([several.statusCode, several.json().detail]).toEqual([
    409,
    expect.stringContaining('"copy", "resell"'),
  ]);
  const none = await tw.call("POST", `/assets/${await idOf("s3://new")}/materialize`);
  expect([none.statusCode, none.json().detail]).toEqual([404, expect.stringContaining("No DAG produces")]);
});

test("shows assets of DAGs and runs", async () => {
  const ids = async (query: string) =>
    (await get(`/dags?${query}`)).dags.map((dag: { dag_id: string }) => dag.dag_id);
  expect(await ids("has_asset_schedule=true")).toEqual(["report"]);
  expect(await ids("asset_dependency=orders")).toEqual(["report"]);
  expect(await get("/dags/report/details")).toMatchObject({
    timetable_summary: "asset",
    timetable_partitioned: true,
    asset_expression: {
      any: [
        { asset: { uri: "s3://orders", name: "s3://orders", group: "shop" } },
        { alias: { name: "daily", group: "asset" } },
      ],
    },
  });
  const run = await tw.addRun("report", { runId: "made" });
  const event = (await send({ uri: "s3://orders", payload: null })).json();
  await tw.sql("UPDATE dag_run SET partition_key = 'mon' WHERE id = $1", [run]);
  await tw.sql("INSERT INTO asset_event_run VALUES ($1, $2)", [run, event.id]);
  expect(await get("/dags/report/dagRuns/made/upstreamAssetEvents")).toMatchObject({
    asset_events: [
      { id: event.id, created_dagruns: [{ dag_id: "report", run_id: "made", partition_key: "mon" }] },
    ],
    total_entries: 1,
  });
  for (const filter of ["partition_key_pattern=mo", "consuming_asset_pattern=orders"])
    expect((await get(`/dags/~/dagRuns?${filter}`)).dag_runs).toMatchObject([
      { dag_run_id: "made", partition_key: "mon" },
    ]);
  expect((await get("/dags/~/dagRuns?consuming_asset_pattern=copies")).dag_runs).toEqual([]);
});
