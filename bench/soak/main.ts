/**
 * Whether a scheduler's memory grows with its completed work: consecutive runs, many small tasks with small outputs, and
 * the heap after a full collection at ten points in time.
 *
 *   npm run bench:soak -- [tasks: 200000] [folder for heap snapshots of the first and the last moment]
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeHeapSnapshot } from "node:v8";
import { openRig } from "../rig.ts";

const WIDTH = 50;
const DEPTH = 10;
const RUNS_AT_ONCE = 8;
const MOMENTS = 10;

const tasks = Number(process.argv[2] ?? 200_000);
const snapshots = process.argv[3];
if (snapshots) mkdirSync(snapshots, { recursive: true });
const { gc } = globalThis;
if (gc === undefined) throw new Error("start it with --expose-gc, as npm run bench:soak does");

const source = `import { dag } from "tradewind";
export default dag("soak", { maxActiveRuns: ${RUNS_AT_ONCE}, maxActiveTasks: 1000 }, (d) => {
  for (let chain = 0; chain < ${WIDTH}; chain++) {
    let former = d.task("t" + chain + "_0", () => chain);
    for (let n = 1; n < ${DEPTH}; n++)
      former = d.task("t" + chain + "_" + n, { inputs: { former } }, ({ former }) => former + 1);
  }
});`;

const rig = await openRig();
try {
  await rig.publish({ "soak.ts": source });
  const rounds = Math.max(MOMENTS, Math.ceil(tasks / (WIDTH * DEPTH * RUNS_AT_ONCE)));
  const run = () => rig.run(Array<string>(RUNS_AT_ONCE).fill("soak"));
  // Caches fill, code is compiled.
  for (let warm = 0; warm < 3; warm++) await run();
  const points: { done: number; mb: number }[] = [];
  const look = (done: number) => {
    for (let n = 0; n < 3; n++) gc();
    const { heapUsed, external } = process.memoryUsage();
    points.push({ done, mb: (heapUsed + external) / 1024 / 1024 });
    console.log(`${done} tasks: ${points.at(-1)?.mb.toFixed(1)} MB`);
  };
  look(0);
  if (snapshots) writeHeapSnapshot(join(snapshots, "first.heapsnapshot"));
  let done = 0;
  for (let round = 1; round <= rounds; round++) {
    await run();
    done += WIDTH * DEPTH * RUNS_AT_ONCE;
    if (Math.floor((round * MOMENTS) / rounds) > Math.floor(((round - 1) * MOMENTS) / rounds)) look(done);
  }
  if (snapshots) writeHeapSnapshot(join(snapshots, "last.heapsnapshot"));
  const mean = (of: (point: (typeof points)[number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.done), mean((point) => point.mb)];
  const slope = mean((point) => (point.done - x) * (point.mb - y)) / mean((point) => (point.done - x) ** 2);
  console.log(`${(slope * 1_000_000).toFixed(1)} MB per million tasks`);
} finally {
  await rig.stop();
}
