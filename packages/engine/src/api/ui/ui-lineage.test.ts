/** What is upstream and downstream of an asset or a DAG. */
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { setAssets } from "../../store/asset/asset-publish.ts";

let tw: Installation;

const asset = (uri: string) => ({ kind: "asset" as const, uri, group: "lake", description: null });
const daily = { kind: "alias" as const, name: "daily", group: "lake" };

beforeAll(async () => {
  tw = await Installation.open();
  // raw -> load -> orders -> model -> facts -> report; load -> daily (alias); other -> facts; side uses raw.
  const manifests = [
    manifestOf("load", [
      { taskId: "read", consumes: [asset("raw")] },
      { taskId: "write", produces: [asset("orders"), daily] },
      { taskId: "write_late", produces: [asset("orders")] },
    ]),
    manifestOf("model", [{ taskId: "join", consumes: [asset("orders")], produces: [asset("facts")] }]),
    manifestOf("report", [{ taskId: "sum", consumes: [asset("facts")] }]),
    manifestOf("other", [{ taskId: "add", produces: [asset("facts")] }]),
    manifestOf("side", [{ taskId: "copy", consumes: [asset("raw")], produces: [asset("copies")] }]),
    manifestOf("watch", [{ taskId: "see", consumes: [daily] }]),
    manifestOf("gone", [{ taskId: "old", consumes: [asset("orders")] }]),
  ];
  for (const manifest of manifests) await tw.addDag(manifest);
  await tw.database.transaction((tx) => setAssets(tx, manifests));
  await tw.sql("UPDATE dag SET is_stale = true WHERE dag_id = 'gone'");
  await tw.addRun("model", { runId: "one", state: "failed" });
});

const get = async (query: string) => (await tw.call("GET", `/ui/lineage${query}`, undefined)).json();
const idOf = async (uri: string): Promise<number> => {
  const [row] = await tw.sql<{ id: number }>("SELECT id FROM asset WHERE uri = $1", [uri]);
  return row!.id;
};

interface Answer {
  readonly assets: { id: number; uri: string }[];
  readonly dags: { dag_id: string }[];
}
const names = ({ assets, dags }: Answer) => ({
  assets: assets.map(({ uri }) => uri),
  dags: dags.map(({ dag_id }) => dag_id),
});

it("follows an asset in both directions, and not to what only shares a source", async () => {
  const answer = await get(`?asset_id=${await idOf("orders")}`);
  expect(names(answer)).toEqual({ assets: ["facts", "orders", "raw"], dags: ["load", "model", "report"] });
  expect(answer.more).toBe(false);
  expect(answer.dags).toContainEqual({ dag_id: "model", is_paused: false, state: "failed" });
  expect(answer.edges).toContainEqual({
    dag_id: "load",
    asset_id: await idOf("orders"),
    alias_id: null,
    kind: "produces",
    task_ids: ["write", "write_late"],
  });
});

it("ends after the given number of steps", async () => {
  expect(names(await get(`?asset_id=${await idOf("orders")}&depth=1`))).toEqual({
    assets: ["orders"],
    dags: ["load", "model"],
  });
});

it("follows a DAG, also through aliases", async () => {
  const answer = await get("?dag_id=load");
  expect(names(answer)).toEqual({
    assets: ["facts", "orders", "raw"],
    dags: ["load", "model", "report", "watch"],
  });
  expect(answer.aliases).toMatchObject([{ name: "daily" }]);
});

it("lists everything without a start", async () => {
  expect(names(await get(""))).toEqual({
    assets: ["copies", "facts", "orders", "raw"],
    dags: ["load", "model", "other", "report", "side", "watch"],
  });
});

it.each([
  ["?asset_id=4711", 404],
  ["?dag_id=nothing", 404],
  ["?dag_id=load&asset_id=1", 422],
  ["?depth=0", 422],
])("rejects %s", async (query, status) => {
  expect((await tw.call("GET", `/ui/lineage${query}`)).statusCode).toBe(status);
});
