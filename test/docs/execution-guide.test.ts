/** The worker of docs/guides/execution-api.md, in a separate process against a real API, Redis and scheduler. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { WorkerRig } from "../../packages/engine/test/support/worker-rig.ts";
import { blocksOf, ROOT } from "./guide.ts";

const blocks = new Map(blocksOf("docs/guides/execution-api.md").map(({ text, title }) => [title, text]));

it("runs the tasks of its queue, and signs off", async () => {
  // Inside the repository, where packages resolve.
  await mkdir(join(ROOT, ".cache"), { recursive: true });
  const folder = await mkdtemp(join(ROOT, ".cache/execution-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(folder, "ledger.ts"), blocks.get("workers/ledger.ts")!);
  const on = await WorkerRig.open();
  await on.rig.publish({ "booking.ts": blocks.get("dags/booking.ts")! });
  await on.worker();
  const child = spawn(process.execPath, [join(folder, "ledger.ts")], {
    env: {
      PATH: process.env.PATH,
      TRADEWIND_URL: on.proxy.url,
      TRADEWIND_TOKEN: on.workerToken,
      REDIS_URL: on.redisUrl,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  // Answers are lost on the way, and the calls repeated.
  on.proxy.fault = (what) =>
    /claims|reports|logs/.test(what) && on.proxy.count(what) === 1 ? { kind: "lose" } : null;
  const run = await on.rig.trigger("booking");
  expect(await on.rig.ended(run)).toBe("success");
  expect(await on.rig.output(run, "report")).toBe("booked: R-1");
  expect(await on.logLines("booking", (await on.rig.run(run)).run_id, "book")).toEqual(["booking"]);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  expect(on.proxy.requests.filter((what) => what.startsWith("DELETE"))).toHaveLength(1);
});
