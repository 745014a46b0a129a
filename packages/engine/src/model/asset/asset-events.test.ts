import type { Json } from "@tradewind/sdk/manifest";
import { expect, test } from "vitest";
import { assetNews, successSignals } from "./asset-events.ts";

const asset = (uri: string) => ({ kind: "asset" as const, uri, group: "asset", description: null });
const source = { dagId: "d", runId: "r", taskId: "t", mapIndex: -1 };
const nothing = { payload: null, partition: null, alias: null, source };

test("success sends one event for each produced asset the task did not report, plus the reported events", () => {
  const produces = [asset("a"), asset("b"), { kind: "alias" as const, name: "n", group: "asset" }];
  const told = [
    { namespace: "default", key: "a", value: 1 },
    { namespace: "asset", key: "b", value: { payload: 2, partition: "p", alias: null } },
    { namespace: "asset", key: "b", value: { payload: 3, partition: null, alias: "n" } },
  ];
  expect(successSignals({ produces }, told, source)).toEqual([
    { namespace: "default", key: "a", value: 1 },
    { namespace: "asset", key: "b", value: { payload: 2, partition: "p", alias: null, source } },
    { namespace: "asset", key: "b", value: { payload: 3, partition: null, alias: "n", source } },
    { namespace: "asset", key: "a", value: nothing },
  ]);
  expect(successSignals({}, [], source)).toEqual([]);
});

test("success overwrites the source that a task puts in an asset event", () => {
  const value = { payload: 1, source: { dagId: "other", runId: "r", taskId: "t", mapIndex: 0 } };
  const [signal] = successSignals({}, [{ namespace: "asset", key: "a", value }], source);
  expect(signal!.value).toMatchObject({ payload: 1, source });
});

test.each<Json>([null, 7, "x", [1], {}, { payload: 1, partition: 7, source: "me" }])(
  "assetNews reads %j without an error",
  (value) => {
    const payload = (value as { payload?: number } | null)?.payload ?? null;
    expect(assetNews(value)).toEqual({ payload, partition: null, alias: null, source: null });
  },
);
