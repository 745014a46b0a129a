import type { MapLabel } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { RunModel } from "../run/run.ts";
import { InputReader } from "./input-reader.ts";
import { LargeValue } from "./large-value.ts";
import { LONGEST_LABEL, labelOf, largeIn, nameOf } from "./map-labels.ts";

describe("the label of an item", () => {
  test("contains the named fields of the item, and no inherited ones", () => {
    const item = { name: "a.csv", size: 3, none: null, tags: ["x"], place: { city: "Rome" } };
    expect(labelOf([["name"], " in ", ["place", "city"]], item)).toBe("a.csv in Rome");
    expect(labelOf([["size"], ["none"], ["missing"], ["tags"]], item)).toBe('3["x"]');
    expect(labelOf([["tags", "0"]], item)).toBe("x");
    expect(labelOf([[]], "north")).toBe("north");
    expect(labelOf(["of ", ["constructor"], ["name", "length"]], item)).toBeNull();
    expect(labelOf([[]], undefined)).toBeNull();
  });

  test("is one line that can be stored, for any item", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (item) => {
        const label = labelOf([[], "/", ["a"]], item as never);
        expect(label ?? "").not.toMatch(/[\n\0]/);
        expect((label ?? "").length).toBeLessThanOrEqual(LONGEST_LABEL);
      }),
      { numRuns: 300 },
    );
    expect(labelOf([[]], "a\nb\0c")).toBe("a b c");
    expect(labelOf([[]], `${"x".repeat(248)}😀${"y".repeat(9)}`)).toBe(`${"x".repeat(248)}…`);
  });
});

test("only the large values that a label names have to be read", () => {
  const reference = { id: 7, store: "file:", key: "k", bytes: 1, sha256: "", items: 3 };
  const [first, second] = [new LargeValue(reference, [0]), new LargeValue(reference, [1])];
  const part = (label: MapLabel | null) => [{ index: 4, label, item: [first, [second, "x"]] }];
  expect(largeIn(part([["0", "name"]]))).toEqual([first]);
  expect(largeIn(part([["1", "1"]]))).toEqual([second]);
  expect(largeIn(part([[]]))).toEqual([first, second]);
  expect(largeIn(part(null))).toEqual([]);
  expect(nameOf(part([["0", "name"]]), () => ({ name: "n" }))).toBe("n");
  expect(nameOf(part([["0", "name"]]))).toBe("4");
});

test("an instance in nested maps is named by both items, and is returned for labelling only once", () => {
  const manifest = dagManifest(
    [
      taskManifest("split", { map: "outer" }),
      taskManifest("work", { map: "inner", upstream: ["split"] }),
      taskManifest("plain", { map: "plain" }),
    ],
    {
      maps: [
        { mapId: "outer", parent: null, over: { kind: "list", items: ["n", "s"] }, limit: null, label: [[]] },
        { mapId: "inner", parent: "outer", over: { kind: "list", items: [1, 2] }, limit: null },
        { mapId: "plain", parent: null, over: { kind: "list", items: [1] }, limit: null },
      ],
    },
  );
  const model = RunModel.load(compileGraph(manifest), []);
  model.start(1);
  const expand = (mapId: string, parent: number, length: number) => {
    model.apply({ type: "expanded", mapId, parent, length }, 1);
    model.make(Number.POSITIVE_INFINITY, 1);
  };
  expand("plain", -1, 1);
  expand("outer", -1, 2);
  const of = { taskId: "split", mapIndex: 1, attempt: "a", at: 1 };
  model.apply({ type: "queued", ...of }, 1);
  model.apply({ type: "succeeded", ...of, skip: [] }, 1);
  expand("inner", 1, 2);
  const reader = new InputReader(model, () => undefined);
  const unlabelled = model.drainUnlabelled();
  for (const instance of unlabelled) model.label(instance, nameOf(reader.label(instance)));
  expect(model.drainMapChanges()?.labels).toEqual([
    { taskId: "split", mapIndex: 0, label: "n" },
    { taskId: "split", mapIndex: 1, label: "s" },
    { taskId: "work", mapIndex: 0, label: "s/0" },
    { taskId: "work", mapIndex: 1, label: "s/1" },
  ]);
  expect(model.drainUnlabelled()).toEqual([]);
});
