import { randomUUID } from "node:crypto";
import { beforeAll, expect, it } from "vitest";
import { WorkerRig } from "../../test/support/worker-rig.ts";
import { launchToken } from "../secret/attempt-token.ts";
import { adhoc } from "../store/database/database.ts";
import { type PodWorkerEnd, runPodWorker } from "./pod-worker.ts";

let on: WorkerRig;

beforeAll(async () => {
  on = await WorkerRig.open({ TRADEWIND_OUTPUT_INLINE_LIMIT: "65536" });
  await on.rig.publish({
    "pods.ts": `
      import { dag } from "tradewind";
      export default dag("pods", {}, (d) => {
        const big = d.task("big", (_, ctx) => {
          ctx.log.info("made in a pod");
          return "x".repeat(200_000);
        });
        d.task("read", { inputs: { big } }, ({ big }) => big.length);
      });
    `,
  });
}, 60_000);

function pod(assignment: string): Promise<PodWorkerEnd> {
  return runPodWorker({
    ...{ assignment, url: on.proxy.url, token: launchToken(on.rig.secretBox, assignment) },
    env: { TRADEWIND_LOG_LEVEL: "error" },
    signal: new AbortController().signal,
  });
}

/** The assignment of a task, once it is stored. */
async function assignmentOf(run: number, task: string): Promise<string> {
  const sql = adhoc("SELECT id FROM assignment WHERE dag_run_id = $1 AND task_id = $2");
  let id: string | undefined;
  await on.rig.until(async () => {
    id = (await on.rig.db.one<{ id: string }>(sql, [run, task]))?.id;
    return id !== undefined;
  }, `the assignment of ${task}`);
  return id ?? "";
}

it("runs a task with large values in a pod, which needs the API only", async () => {
  const run = await on.rig.trigger("pods");
  expect(await pod(await assignmentOf(run, "big"))).toBe("ended");
  expect(await pod(await assignmentOf(run, "read"))).toBe("ended");
  expect(await on.rig.ended(run)).toBe("success");
  expect(await on.rig.output(run, "read")).toBe(200_000);
  expect(await on.logLines("pods", (await on.rig.run(run)).run_id, "big")).toContain("made in a pod");
});

it("has nothing to do if its assignment has ended before the pod started", async () => {
  expect(await pod(randomUUID())).toBe("superseded");
});
