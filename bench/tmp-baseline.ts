import { Session } from "node:inspector/promises";
import { writeFileSync } from "node:fs";
import { openRig } from "./rig.ts";
import { files } from "./tmp-files.ts";
const ids = (process.argv[2] ?? "chain,fan,ten,ind").split(",");
const times = Number(process.argv[3] ?? 4);
const rig = await openRig({});
await rig.publish(files);
const go = (id: string) => (id === "ten" ? rig.run(Array(100).fill("ten")) : rig.run([id]));
const size = { chain: 100, fan: 1002, ten: 1000, ind: 10000 } as Record<string, number>;
for (const id of ids) {
  await go(id);
  const session = process.env.PROF ? new Session() : null;
  if (session) { session.connect(); await session.post("Profiler.enable"); await session.post("Profiler.setSamplingInterval", { interval: 200 }); await session.post("Profiler.start"); }
  const all = [];
  const g0 = performance.now();
  for (let k = 0; k < times; k++) all.push(await go(id));
  if (session) { const { profile } = await session.post("Profiler.stop"); writeFileSync(`/tmp/bp/${id}.cpuprofile`, JSON.stringify(profile)); }
  const n = size[id]!;
  const ms = all.map((r) => r.ms).sort((a, b) => a - b);
  const cpu = (["main", "children", "postgres"] as const).map((k) => `${k} ${((all.reduce((s, r) => s + r.cpu[k], 0) * 1000) / n / times).toFixed(0)}`).join(" ");
  console.log(id.padEnd(6), `min ${ms[0]!.toFixed(0)} p50 ${ms[times >> 1]!.toFixed(0)} ms; min ${(ms[0]! / n).toFixed(2)} ms/task, ${((n / ms[0]!) * 1000).toFixed(0)}/s; cpu us/task ${cpu}`);
}
await rig.stop();
