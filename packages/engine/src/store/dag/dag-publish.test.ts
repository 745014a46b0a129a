import type { DagManifest } from "@tradewind/sdk/manifest";
import { beforeEach, expect, it } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import type { PlannedRun, Planner } from "../../model/calendar/planner.ts";
import { adhoc } from "../database/database.ts";
import { loadBundle } from "./bundles.ts";
import { readCatalogue, recordImportError, removeFiles } from "./dag-catalogue.ts";
import { type FilePublication, publishFiles } from "./dag-publish.ts";

let test: TestDatabase;
beforeEach(async () => {
  test = await testDatabase();
  return () => test.close();
});

const HOUR = 3_600_000;
const options = { isPausedAtCreation: false, plan: (() => null) as Planner };

it("plans the next run when a schedule is new, changed or restored, and only then", async () => {
  const calls: { last: PlannedRun | null; now: number }[] = [];
  const next = (now: number) => ({
    logicalDate: now,
    intervalStart: now,
    intervalEnd: now + HOUR,
    runAfter: now + HOUR,
  });
  const plan: Planner = (_, last, now) => {
    calls.push({ last, now });
    return next(now);
  };
  const publish = (hash: string, manifest: Partial<DagManifest>) =>
    publishFiles(test.db, [publication("a.ts", hash, [{ ...manifest }])], { isPausedAtCreation: true, plan });

  await publish("1", { schedule: { kind: "interval", everyMs: HOUR, style: "interval" } });
  expect(calls).toHaveLength(1);
  expect(calls[0]?.last).toBeNull();
  expect(Math.abs((calls[0]?.now ?? 0) - Date.now())).toBeLessThan(60_000);
  const planned = await plannedAt();
  expect(planned).toBe((calls[0]?.now ?? 0) + HOUR);

  await test.db.rows(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, logical_date, interval_start, interval_end, version_id, triggered_by)
           SELECT 'a', type || day, type, day::timestamptz, day::timestamptz, day::timestamptz + interval '1 hour', v.id, 'test'
           FROM dag_version v, (VALUES ('scheduled', '2026-01-01T00:00Z'), ('scheduled', '2026-01-02T00:00Z'),
                                       ('manual', '2026-01-03T00:00Z')) AS r(type, day)`),
  );
  await publish("2", { schedule: { kind: "interval", everyMs: HOUR, style: "interval" } });
  expect(calls).toHaveLength(1);
  expect(await plannedAt()).toBe(planned);

  await publish("3", { schedule: { kind: "interval", everyMs: 2 * HOUR, style: "interval" } });
  expect(calls).toHaveLength(2);
  expect(calls[1]?.last).toEqual({
    logicalDate: Date.parse("2026-01-02T00:00Z"),
    intervalStart: Date.parse("2026-01-02T00:00Z"),
    intervalEnd: Date.parse("2026-01-02T01:00Z"),
    runAfter: expect.any(Number) as number,
  });

  await removeFiles(test.db, ["a.ts"]);
  await publish("3", { schedule: { kind: "interval", everyMs: 2 * HOUR, style: "interval" } });
  expect(calls).toHaveLength(3);
  const [dag] = await test.db.rows(adhoc("SELECT is_paused, is_stale FROM dag"));
  expect(dag).toEqual({ is_paused: true, is_stale: false });
});

it("stores the limits of tasks as rows of pool", async () => {
  const limits = (maxActivePerDag: number) => ({
    tasks: [taskManifest("t", { maxActivePerDag }), taskManifest("free", {})],
  });
  await publishFiles(test.db, [publication("a.ts", "1", [limits(3)])], options);
  await publishFiles(test.db, [publication("a.ts", "2", [limits(5)])], options);
  const rows = await test.db.rows(adhoc("SELECT name, slots FROM pool WHERE name LIKE '@%'"));
  expect(rows).toEqual([{ name: "@a/t", slots: 5 }]);
});

it("creates a version for each change of code, also back to earlier code, and clears the file's error", async () => {
  for (const hash of ["1", "1", "2", "1"]) {
    await recordImportError(test.db, "a.ts", "broken");
    await publishFiles(test.db, [publication("a.ts", hash, [{}])], options);
  }
  const rows = await test.db.rows(adhoc("SELECT number, bundle_hash FROM dag_version ORDER BY number"));
  expect(rows).toEqual([
    { number: 1, bundle_hash: "1" },
    { number: 2, bundle_hash: "2" },
    { number: 3, bundle_hash: "1" },
  ]);
  expect((await readCatalogue(test.db)).get("a.ts")?.error).toBeNull();
});

it("rejects a file with a DAG that another file declares, and stores none of its DAGs", async () => {
  const outcomes = await publishFiles(
    test.db,
    [
      publication("a.ts", "1", [{ dagId: "x" }]),
      publication("b.ts", "2", [{ dagId: "new" }, { dagId: "x" }]),
    ],
    options,
  );
  expect(outcomes).toEqual([
    { file: "a.ts", changed: ["x"], taken: null },
    { file: "b.ts", changed: [], taken: { dagId: "x", by: "a.ts" } },
  ]);
  expect([...(await readCatalogue(test.db)).keys()]).toEqual(["a.ts"]);
});

it("creates one version when several processors publish the same change concurrently", async () => {
  const many = Array.from({ length: 8 }, () =>
    publishFiles(test.db, [publication("a.ts", "1", [{ dagId: "x" }, { dagId: "y" }])], options),
  );
  const changed = (await Promise.all(many)).flatMap(([outcome]) => outcome?.changed ?? []);
  expect(changed.sort()).toEqual(["x", "y"]);
  const [count] = await test.db.rows<{ n: number }>(adhoc("SELECT count(*)::int AS n FROM dag_version"));
  expect(count?.n).toBe(2);
});

it("stores shared code once and loads each bundle complete", async () => {
  const shared = { hash: "p", names: ["sdk"], code: "let sdk = 1;\n".repeat(1_000) };
  const own = { hash: "q", names: ["one", "two"], code: "let one = 1, two = 2;\n" };
  const files = [shared, shared, own, null].map((sharedChunk, n) => {
    const { bundle, ...rest } = publication(`${n}.ts`, `h${n}`, [{ dagId: `d${n}` }]);
    return { ...rest, bundle: { ...bundle, head: `// head ${n}\n`, sharedChunk } };
  });
  await publishFiles(test.db, files.slice(0, 1), options);
  await publishFiles(test.db, files, options);
  for (const { bundle } of files)
    expect({ ...(await loadBundle(test.db, bundle.hash)), hash: bundle.hash }).toEqual(bundle);
  const stored = await test.db.rows(
    adhoc("SELECT hash, length(code) AS size FROM shared_chunk ORDER BY hash"),
  );
  expect(stored).toEqual([
    { hash: "p", size: shared.code.length },
    { hash: "q", size: own.code.length },
  ]);
});

async function plannedAt(): Promise<number | undefined> {
  const [row] = await test.db.rows<{ next_run_after: Date }>(adhoc("SELECT next_run_after FROM dag"));
  return row?.next_run_after.getTime();
}

function publication(file: string, hash: string, dags: readonly Partial<DagManifest>[]): FilePublication {
  return {
    file,
    bundle: { hash, head: "", sharedChunk: null, code: `// ${hash}`, sourceMap: null },
    source: "",
    manifests: dags.map((dag) => ({ ...EMPTY, ...dag })),
  };
}

const EMPTY = dagManifest([], { dagId: "a" });
