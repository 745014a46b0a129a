/** Commands about assets, against a real server. */
import { beforeAll, expect, it } from "vitest";
import { setAssets } from "../../engine/src/store/asset/asset-publish.ts";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let tw: ServedInstallation["tw"];

beforeAll(async () => {
  ({ server, tw } = await servedInstallation());
  const orders = { kind: "asset" as const, uri: "s3://orders", group: "shop", description: "All orders." };
  const sell = manifestOf("sell", [{ taskId: "export", produces: [orders] }]);
  await server.addDag(sell);
  await server.database.transaction((tx) => setAssets(tx, [sell]));
});

it("lists and shows assets", async () => {
  const { stdout } = await tw("assets", "list");
  expect(stdout).toMatch(/^ASSET +GROUP +PRODUCED BY +SCHEDULES +LAST EVENT$/m);
  expect(stdout).toMatch(/^s3:\/\/orders +shop +sell\.export +none$/m);
  expect(JSON.parse((await tw("assets", "list", "ORD", "--dag", "sell", "--json")).stdout)).toHaveLength(1);
  expect(await tw("assets", "list", "nothing")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("No assets match"),
  });
  expect((await tw("assets", "show", "s3://orders")).stdout).toMatch(/Produced by +sell\.export/);
  expect(JSON.parse((await tw("assets", "show", "s3://orders", "--json")).stdout)).toMatchObject({
    uri: "s3://orders",
    queued_events: [],
  });
});

it("sends events, once per idempotency key, and lists them", async () => {
  const keyed = [
    "assets",
    "send",
    "s3://orders",
    '{"rows":7}',
    "--partition",
    "mon",
    "--idempotency-key",
    "k",
  ];
  expect(await tw(...keyed)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/Event \d+ of s3:\/\/orders/),
  });
  await tw(...keyed);
  await tw("assets", "send", "s3://new");
  const listed = JSON.parse((await tw("assets", "events", "s3://orders", "--json")).stdout);
  expect(listed).toMatchObject([{ payload: { rows: 7 }, partition_key: "mon", sender: "admin" }]);
  const { stdout } = await tw("assets", "events");
  expect(stdout).toMatch(/^ *\d+ +s3:\/\/new .* admin +0 +null$/m);
  expect(JSON.parse((await tw("assets", "events", "--partition", "tue", "--json")).stdout)).toEqual([]);
  expect(JSON.parse((await tw("assets", "events", "--since", "2999-01-01", "--json")).stdout)).toEqual([]);
});

it("names the invalid value and the remedy", async () => {
  for (const words of [["show"], ["events"]])
    expect(await tw("assets", ...words, "s3://gone")).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/asset s3:\/\/gone does not exist[\s\S]*tradewind assets list/),
    });
  expect(await tw("assets", "send", "s3://orders", "{")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("not valid JSON"),
  });
  expect(await tw("assets", "send", "s3://*")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("must not contain"),
  });
});
