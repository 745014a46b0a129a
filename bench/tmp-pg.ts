import { mkdtemp } from "node:fs/promises";
import { EmbeddedPostgres } from "../packages/engine/src/store/embedded/embedded-postgres.ts";
const server = await EmbeddedPostgres.start({ dataDir: (await mkdtemp("/tmp/twpg-")) + "/pg", settings: { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track": "all", track_io_timing: "on", "pg_stat_statements.track_planning": "on" } });
process.env.DATABASE_URL = server.url;
const { Database, adhoc } = await import("../packages/engine/src/store/database.ts");
const db = Database.connect(server.url);
await db.rows(adhoc("CREATE EXTENSION IF NOT EXISTS pg_stat_statements"));
const { openRig } = await import("./rig.ts");
const { files } = await import("./tmp-files.ts");
const rig = await openRig({});
await rig.publish(files);
for (const id of (process.argv[2] ?? "ind").split(",")) {
  const go = () => (id === "ten" ? rig.run(Array(100).fill("ten")) : rig.run([id]));
  await go();
  await db.rows(adhoc("SELECT pg_stat_statements_reset()"));
  const r = await go();
  console.log(id, r.ms.toFixed(0), r.cpu);
  for (const row of await db.rows<any>(adhoc("SELECT calls, rows, total_exec_time::int AS ms, total_plan_time::int AS plan, (1000*mean_exec_time)::int AS us, wal_bytes::bigint, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) q FROM pg_stat_statements ORDER BY total_exec_time + total_plan_time DESC LIMIT 14"))) console.log(`${row.calls} calls ${row.rows} rows ${row.ms} ms plan ${row.plan} ${row.us} us wal ${row.wal_bytes} ${row.q}`);
}
await rig.stop(); await db.close(); await server.stop("fast");
