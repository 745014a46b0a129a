/** Repeated reads of the signal log cost the same, however long it is. As index-use.test.ts. */
import { beforeAll, describe, expect, it } from "vitest";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, call, type Database } from "../database/database.ts";
import { sendSignals } from "./signals.ts";
import { LOG_BEGIN, startAfterVersion, startNow, startSince } from "./signals-position.ts";
import {
  latestSignals,
  readKey,
  readLog,
  readMatching,
  signalsByVersion,
  smallSignalsCall,
} from "./signals-read.ts";

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Actual Rows"?: number;
  readonly Plans?: readonly Plan[];
}

let db: Database;
let head: { tx: string; id: number };

beforeAll(async () => {
  ({ db } = await testDatabase({ max: 1, maxPipelines: 1 }));
  const read = { after: LOG_BEGIN, namespaces: null, limit: 10 };
  // Planned while the table is empty, as in a new installation: the plans must remain good when it has grown.
  await readLog(db, read);
  await readMatching(db, {
    after: LOG_BEGIN,
    upTo: LOG_BEGIN,
    filter: { namespace: "%", keys: ["%"], sender: null, afterVersion: null, since: null },
    limit: 10,
  });
  const key = { namespace: "n", key: "k1", from: 0, upTo: LOG_BEGIN, sender: null, limit: 10 };
  await readKey(db, key);
  await readKey(db, { ...key, namespace: "task" });
  await latestSignals(db, "n", ["k1"]);
  await signalsByVersion(db, [1]);
  await db.pipeline([smallSignalsCall([1])]);
  for (let at = 0; at < 10; at++) {
    await db.rows(
      adhoc(`INSERT INTO signal (namespace, key, value, sender)
             SELECT CASE WHEN i % 2 = 0 THEN 'task' ELSE 'n' END, 'k' || i % 1000, '1', 's'
             FROM generate_series(1, 20000) AS i`),
    );
  }
  await db.rows(adhoc("ANALYZE signal"));
  const [sent] = await sendSignals(db, [
    { namespace: "n", key: "k1", value: 1, sender: "s", client: "c", sequence: 1 },
  ]);
  head = sent!;
  await startNow(db);
  await startAfterVersion(db, head.id - 1);
  await startSince(db, new Date());
}, 120_000);

async function explain(sql: string, isPipeline: boolean): Promise<Plan[]> {
  const text = adhoc(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) ${sql}`);
  const rows = isPipeline ? (await db.pipeline([call(text)]))[0] : await db.rows(text);
  const [found] = rows as { "QUERY PLAN": [{ Plan: Plan }] }[];
  return nodes(found!["QUERY PLAN"][0].Plan);
}

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

describe("a log of 200,000 signals", () => {
  it.each([
    ["signal-read-log", () => `('${head.tx}', 0, NULL, 100, NULL, NULL)`],
    ["signal-read-log", () => `('${head.tx}', 0, '{n}', 100, NULL, NULL)`],
    [
      "signal-read-matching",
      () => `('${head.tx}', 0, '${head.tx}', ${head.id}, 20000, 100, '%', '{%}', NULL, NULL, NULL)`,
    ],
    ["signal-read-key", () => `('n', 'k1', ${head.id - 3}, '${head.tx}', ${head.id}, NULL, 100)`],
    ["signal-read-system-key", () => `('task', 'k2', ${head.id - 3}, '${head.tx}', ${head.id}, NULL, 100)`],
    ["signal-read-versions", () => `('{${head.id},${head.id - 7}}')`],
    ["signal-read-small", () => `('{${head.id},${head.id - 7}}')`],
    ["signal-latest", () => "('n', '{k1,k3,none}')"],
  ])("is read by %s with a few rows only", async (name, values) => {
    const plan = await explain(`EXECUTE "${name}"${values()}`, true);
    const read = plan.filter((node) => node["Relation Name"] === "signal" || node["Index Name"]);
    expect(read.length).toBeGreaterThan(0);
    expect(plan.filter((node) => node["Node Type"] === "Seq Scan" && node["Relation Name"])).toEqual([]);
    expect(Math.max(...read.map((node) => node["Actual Rows"] ?? 0))).toBeLessThan(10);
  });

  it.each([
    ["signal-start-now", () => ""],
    ["signal-start-version", () => `(${head.id - 1})`],
    ["signal-start-time", () => "(now())"],
    ["signal-find-sent", () => "('{c}', '{1}')"],
  ])("is not scanned by %s", async (name, values) => {
    if (name === "signal-find-sent")
      await sendSignals(db, [{ namespace: "n", key: "k1", value: 1, sender: "s", client: "c", sequence: 1 }]);
    const plan = await explain(`EXECUTE "${name}"${values()}`, false);
    const scans = plan.filter(
      (node) => node["Node Type"] === "Seq Scan" && node["Relation Name"] === "signal",
    );
    expect(scans, JSON.stringify(plan)).toEqual([]);
    // A BRIN index selects a range of blocks, not rows.
    const read = plan.filter(
      (node) => node["Index Name"] !== "signal_created" && node["Relation Name"] === "signal",
    );
    expect(Math.max(...read.map((node) => node["Actual Rows"] ?? 0))).toBeLessThan(10);
  });
});
