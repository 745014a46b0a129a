import pg from "pg";
import { openRig } from "./rig.ts";
import { files } from "./tmp-files.ts";
import { batchCalls } from "../packages/engine/src/store/run-batch.ts";
const rig = await openRig({});
await rig.publish(files);
await rig.run(["ind"]);
const run = (await rig.run(["ind"])).ids[0]!;
const rows = Array.from({ length: 20 }, (_, i) => ({ runId: run, taskId: "t" + i * 7, mapIndex: -1, from: "success" as const, fromAttempt: null as string | null, to: "success" as const, attempt: null as string | null, tryNumber: 1, infraLosses: 0, scheduledAt: Date.now(), queuedAt: Date.now(), startedAt: Date.now(), endedAt: Date.now(), retryAt: null, pid: 5, reason: null }));
const client = new pg.Client({ connectionString: rig.database.url, options: "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan" });
await client.connect();
const now = await client.query("select task_id, attempt from task_instance where dag_run_id = $1 and task_id = any($2)", [run, rows.map((r) => r.taskId)]);
const by = new Map(now.rows.map((r) => [r.task_id, r.attempt]));
for (const r of rows) { r.fromAttempt = by.get(r.taskId); r.attempt = by.get(r.taskId); }
const calls = batchCalls({ jobId: 1, hostname: "h", sender: "x", fences: [{ runId: run, generation: 1 }], slots: new Map([["default_pool", 0]]), instances: rows, births: [], attempts: [], outputs: [], signals: rows.map((r) => ({ namespace: "task", key: "a/b/" + r.taskId, value: { a: 1 } })), callbacks: [], ends: [] } as any);
for (const c of calls) {
  const t = c.statement.text;
  await client.query("BEGIN");
  try {
    const n = (t.match(/\$\d+/g) ?? []).map((x) => Number(x.slice(1)));
    await client.query({ name: "x" + c.statement.name, text: "EXPLAIN (ANALYZE, BUFFERS) " + t, values: c.values as any });
    for (let k = 0; k < 6; k++) await client.query({ name: "y" + c.statement.name, text: t, values: c.values as any }).catch((e) => { throw e; });
    const r = await client.query({ name: "x" + c.statement.name, text: "EXPLAIN (ANALYZE, BUFFERS) " + t, values: c.values as any });
    console.log(c.statement.name + "\n" + r.rows.map((x: any) => x["QUERY PLAN"]).join("\n"));
  } catch (e) { console.log(c.statement.name, String(e)); }
  await client.query("ROLLBACK");
}
await client.end();
await rig.stop();
