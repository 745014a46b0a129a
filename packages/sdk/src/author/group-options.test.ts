import { expect, test } from "vitest";
import { PROGRAM } from "../runtime/program.ts";
import { every } from "../schedule/schedule.ts";
import type { DagBuilder } from "./builder.ts";
import { dag } from "./dag.ts";

const manifest = (build: (d: DagBuilder) => void, options = {}) =>
  dag("d", options, build)[PROGRAM].describe();

test("leaves the manifest of a group without options unchanged", () => {
  const { groups } = manifest((d) => void d.group("g", (g) => void g.task("a", () => {})));
  expect(groups).toEqual([{ groupId: "g", parent: null, docs: null }]);
});

test("writes retries and callbacks of a group to the manifest", () => {
  const { groups } = manifest((d) => {
    d.group("g", { retries: 2, retryDelay: "10s", onFailure: () => {} }, (g) => void g.task("a", () => {}));
  });
  expect(groups).toEqual([
    {
      groupId: "g",
      parent: null,
      docs: null,
      retry: { retries: 2, delayMs: 10_000 },
      callbacks: { success: false, failure: true, retry: false },
    },
  ]);
});

test("names the map of a group with retries that is mapped, or in a map", () => {
  const { groups } = manifest((d) => {
    d.mapGroup("m", { over: [1], retries: 1, retryDelay: 0, onRetry: () => {} }, (g) => {
      g.group("inner", { retries: 2, retryDelay: 0 }, (h) => void h.task("a", () => {}));
      g.group("plain", (h) => void h.task("b", () => {}));
    });
  });
  expect(groups.map(({ groupId, retry }) => [groupId, retry])).toEqual([
    ["m", { retries: 1, delayMs: 0, map: "m" }],
    ["m.inner", { retries: 2, delayMs: 0, map: "m" }],
    ["m.plain", undefined],
  ]);
});

test("writes retries of a run to the manifest only if they are set", () => {
  const one = (d: DagBuilder) => void d.task("a", () => {});
  expect(manifest(one)).not.toHaveProperty("runRetry");
  expect(manifest(one, { runRetries: 3 }).runRetry).toEqual({
    retries: 3,
    delayMs: 300_000,
    from: "failure",
  });
  expect(() => manifest(one, { runRetries: 1, runRetryFrom: "end" })).toThrow(/runRetryFrom must be one of/);
  expect(() => manifest(one, { runRetryDelay: "1m" })).toThrow(/runRetryDelay needs runRetries/);
  expect(() => manifest(one, { runRetries: 0, runRetryFrom: "start" })).toThrow(
    /runRetryFrom needs runRetries/,
  );
});

test.each<[string, (d: DagBuilder) => void, RegExp]>([
  [
    "with a delay and no retries",
    (d) => void d.group("g", { retryDelay: "1s" }, (g) => void g.task("a", () => {})),
    /retryDelay needs retries/,
  ],
  [
    "with a task that has times of its own",
    (d) => void d.group("g", { retries: 1 }, (g) => void g.task("a", { every: every("1m") }, () => {})),
    /its task "g.a" has signal rules or times of its own/,
  ],
  [
    "around a setup without its teardown",
    (d) => {
      const made = d.group("g", { retries: 1 }, (g) => g.setup("up", () => 1)).result;
      d.teardown("down", { of: made }, () => {});
    },
    /contains only one of the setup "g.up" and its teardown "down"/,
  ],
  [
    "that depends on a task which depends on it",
    (d) => {
      d.group("g", { retries: 1 }, (g) => {
        const a = g.task("a", () => 1);
        const outside = d.task("outside", { after: a }, () => {});
        g.task("b", { after: outside }, () => {});
      });
    },
    /its task "g.b" depends on "outside" outside/,
  ],
])("rejects a group with retries %s", (_, build, message) => {
  expect(() => manifest(build)).toThrow(message);
});
