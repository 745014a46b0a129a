import fc from "fast-check";
import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { diffVersions, isSameShape } from "./version-diff.ts";

const daily = { kind: "cron", expression: "0 2 * * *", timezone: "UTC", style: "trigger" } as const;

test("the diff lists added, removed and changed tasks, edges, groups and DAG options", () => {
  const from = dagManifest(
    [
      taskManifest("extract", { retries: 1 }),
      taskManifest("clean", { upstream: ["extract"] }),
      taskManifest("load", { upstream: ["clean"], inputs: { rows: { taskId: "clean" } } }),
    ],
    { schedule: { kind: "none" }, tags: ["eu"] },
  );
  const to = dagManifest(
    [
      taskManifest("extract", { retries: 3, timeoutMs: 60_000 }),
      taskManifest("load", { upstream: ["extract"], inputs: { rows: { taskId: "extract" } } }),
      taskManifest("report", { upstream: ["load"] }),
    ],
    { schedule: daily, tags: ["eu"], groups: [{ groupId: "g", parent: null, docs: null }] },
  );
  expect(diffVersions(from, to)).toEqual({
    options: [{ field: "schedule", from: { kind: "none" }, to: daily }],
    tasks: {
      added: ["report"],
      removed: ["clean"],
      changed: [
        {
          id: "extract",
          fields: [
            { field: "retries", from: 1, to: 3 },
            { field: "timeoutMs", from: null, to: 60_000 },
          ],
        },
        {
          id: "load",
          fields: [
            { field: "inputs", from: { rows: { taskId: "clean" } }, to: { rows: { taskId: "extract" } } },
          ],
        },
      ],
    },
    edges: {
      added: [
        { from: "extract", to: "load" },
        { from: "load", to: "report" },
      ],
      removed: [
        { from: "extract", to: "clean" },
        { from: "clean", to: "load" },
      ],
    },
    groups: { added: ["g"], removed: [], changed: [] },
    maps: { added: [], removed: [], changed: [] },
  });
});

test("the diff treats missing members as null and ignores the order of tasks, edges and members", () => {
  const { startTrigger: _, ...bare } = taskManifest("b", { upstream: ["a", "c"], startTrigger: null });
  const [a, c] = [taskManifest("a"), taskManifest("c")];
  const from = dagManifest([a, c, bare], { schedule: daily });
  const to = dagManifest([c, { ...bare, upstream: ["c", "a"], startTrigger: null }, a], {
    schedule: { style: "trigger", timezone: "UTC", expression: "0 2 * * *", kind: "cron" },
    stop: null,
  });
  expect(isSameShape(diffVersions(from, to))).toBe(true);
});

test("the reverse diff swaps added and removed, and a version does not differ from itself", () => {
  const ids = ["a", "b", "c", "d", "e"];
  const manifest = fc
    .array(
      fc.record({
        id: fc.constantFrom(...ids),
        after: fc.subarray(ids),
        retries: fc.nat(2),
        pool: fc.constantFrom("p", "q"),
      }),
    )
    .chain((tasks) =>
      fc.record({ maxActiveRuns: fc.nat(2), catchup: fc.boolean() }).map((facts) => {
        const each = new Map(tasks.map((task) => [task.id, task]));
        const upstream = (after: string[], id: string) =>
          after.filter((other) => other < id && each.has(other));
        return dagManifest(
          [...each.values()].map(({ id, after, retries, pool }) =>
            taskManifest(id, { upstream: upstream(after, id), retries, pool }),
          ),
          facts,
        );
      }),
    );
  fc.assert(
    fc.property(manifest, manifest, (one, other) => {
      const there = diffVersions(one, other);
      const back = diffVersions(other, one);
      const sorted = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value)).sort();
      expect(isSameShape(diffVersions(one, structuredClone(one)))).toBe(true);
      expect(isSameShape(there)).toBe(isSameShape(back));
      expect(sorted(back.tasks.added)).toEqual(sorted(there.tasks.removed));
      expect(sorted(back.edges.added)).toEqual(sorted(there.edges.removed));
      expect(back.options).toEqual(
        there.options.map(({ field, from, to }) => ({ field, from: to, to: from })),
      );
      expect(sorted(back.tasks.changed.map(({ id }) => id))).toEqual(
        sorted(there.tasks.changed.map(({ id }) => id)),
      );
    }),
  );
});
