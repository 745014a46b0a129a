/** Maps and inputs give the same results for large outputs as for small ones. */
import type { Json, MapManifest, MapSource } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { RunModel } from "../run/run.ts";
import { expansionOf, InputReader } from "./input-reader.ts";
import { apart, type Known, type LargePlace, LargeValue } from "./large-value.ts";

const map = (mapId: string, over: MapSource, parent: string | null = null): MapManifest => ({
  mapId,
  parent,
  over,
  limit: null,
});
const rows: MapSource = { kind: "output", taskId: "rows" };
const words: MapSource = { kind: "output", taskId: "words" };
const row: MapSource = { kind: "item", mapId: "row" };

const GRAPH = compileGraph(
  dagManifest(
    [
      taskManifest("rows"),
      taskManifest("words"),
      taskManifest("each", { upstream: ["rows"], map: "row", inputs: { row: { item: "row" } } }),
      taskManifest("cell", {
        upstream: ["rows", "words"],
        map: "cell",
        inputs: { cell: { item: "cell" }, row: { item: "row" }, words: { taskId: "words" } },
      }),
      taskManifest("pair", { upstream: ["rows"], map: "pair", inputs: { pair: { item: "pair" } } }),
    ],
    {
      maps: [
        map("row", rows),
        map("cell", { kind: "cross", of: [row, words] }, "row"),
        map("pair", { kind: "zip", of: [rows, rows] }),
      ],
    },
  ),
);

/** Replaces large values by their content, as a store would. */
function whole(value: Known | undefined, outputs: Readonly<Record<string, Json>>): Json | undefined {
  if (value === undefined) return undefined;
  const places: LargePlace[] = [];
  const root = { value: structuredClone(apart(value, ["value"], places)) } as Record<
    string | number,
    unknown
  >;
  for (const { at, value: large } of places) {
    let place = root;
    for (const step of at.slice(0, -1)) place = place[step] as typeof root;
    place[at.at(-1)!] = read(large, outputs);
  }
  return root["value"] as Json;
}

function read({ path, reference }: LargeValue, outputs: Readonly<Record<string, Json>>): Json {
  return path.reduce<Json>((list, index) => (list as Json[])[index]!, outputs[reference.key]!);
}

const list = fc.array(fc.array(fc.nat(9), { maxLength: 3 }), { minLength: 1, maxLength: 3 });

test("maps have the same lengths and instances the same inputs, in memory or in a store", () => {
  fc.assert(
    fc.property(list, fc.array(fc.string(), { minLength: 1, maxLength: 3 }), (table, names) => {
      const outputs: Record<string, Json> = { rows: table, words: names };
      const model = RunModel.load(GRAPH, []);
      model.start(1);
      for (const taskId of ["rows", "words"]) {
        const of = { taskId, mapIndex: -1, attempt: taskId, at: 2 };
        model.apply({ type: "queued", ...of }, 2);
        model.apply({ type: "succeeded", ...of, skip: [] }, 2);
      }
      const lengths = new Map<string, number | null>();
      const small = () => new InputReader(model, (taskId) => ({ value: outputs[taskId] }));
      const large = () =>
        new InputReader(
          model,
          (key) => {
            const items = (outputs[key] as Json[]).length;
            return { value: new LargeValue({ id: 1, store: "file:", key, bytes: 1, sha256: "", items }) };
          },
          ({ name }) => lengths.get(name),
        );
      for (let places = model.drainExpandable(); places.length > 0; places = model.drainExpandable()) {
        for (const place of places) {
          const event = expansionOf(small(), place);
          const first = large();
          expansionOf(first, place);
          for (const value of first.unmeasured) {
            const found = read(value, outputs);
            lengths.set(value.name, Array.isArray(found) ? found.length : null);
          }
          expect(expansionOf(large(), place)).toEqual(event);
          model.apply(event, 3);
          model.make(Number.POSITIVE_INFINITY, 3);
        }
      }
      for (const instance of model.instances()) {
        if (instance.mapIndex < 0) continue;
        for (const source of Object.values(instance.node.manifest.inputs)) {
          const given = large();
          expect(whole(given.input(source, instance).value, outputs)).toEqual(
            small().input(source, instance).value,
          );
          expect([given.hasLarge, given.isVoid]).toEqual([true, false]);
        }
      }
    }),
  );
});

test("a map over a large value that is not a list is rejected", () => {
  const model = RunModel.load(GRAPH, []);
  model.start(1);
  const of = { taskId: "rows", mapIndex: -1, attempt: "a", at: 2 };
  model.apply({ type: "queued", ...of }, 2);
  model.apply({ type: "succeeded", ...of, skip: [] }, 2);
  const reference = { id: 1, store: "file:", key: "k", bytes: 1, sha256: "", items: null };
  const reader = new InputReader(model, () => ({ value: new LargeValue(reference) }));
  expect(expansionOf(reader, model.drainExpandable()[0]!)).toMatchObject({
    type: "unmappable",
    reason: expect.stringMatching(
      /^MAP_UNUSABLE: the output of "rows" is large but not a list, but a map needs a list/,
    ),
  });
});
