import type { Json } from "@tradewind/sdk/manifest";
import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { RunModel } from "../run/run.ts";
import { expansionOf, InputReader } from "./input-reader.ts";

/** The answer of a map whose source has returned this output. */
function told(output: Json, most?: number): string | number {
  const manifest = dagManifest(
    [taskManifest("list"), taskManifest("each", { map: "each", upstream: ["list"] })],
    { maps: [{ mapId: "each", parent: null, over: { kind: "output", taskId: "list" }, limit: null }] },
  );
  const model = RunModel.load(compileGraph(manifest), []);
  model.start(1);
  const of = { taskId: "list", mapIndex: -1, attempt: "a", at: 1 };
  model.apply({ type: "queued", ...of }, 1);
  model.apply({ type: "succeeded", ...of, skip: [] }, 1);
  const reader = new InputReader(model, () => ({ value: output }));
  const event = expansionOf(reader, model.drainExpandable()[0]!, most);
  return event.type === "expanded" ? event.length : event.reason;
}

test("a list gives its length; any other value, or a long list, gives a reason with a remedy", () => {
  expect(told([1, 2])).toBe(2);
  expect(told({ a: 1 })).toBe('MAP_UNUSABLE: the output of "list" is an object, but a map needs a list');
  expect(told("text")).toMatch(/ is a string, but/);
  expect(told(null)).toMatch(/ is null, but/);
  expect(told([1, 2, 3], 2)).toBe(
    "MAP_UNUSABLE: its list has 3 items, more than the limit of 2; raise TRADEWIND_MAX_MAP_LENGTH",
  );
});
