/** A program with a DagRunJob in the home of a running standalone. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { DagRunJob } from "../src/engine.ts";
import { runCaptured } from "./support/captured-host.ts";
import { StandaloneProcess } from "./support/standalone-process.ts";

let standalone: StandaloneProcess;

beforeAll(async () => {
  standalone = await StandaloneProcess.startWith(["hello.ts"], []);
  await standalone.until(/✓ hello /);
}, 120_000);
afterAll(() => standalone?.remove());

it("drives its runs beside the scheduler, and leaves the database running", async () => {
  const job = await DagRunJob.open({ home: standalone.home, parallelism: 2, logLevel: "error" });
  const ended: string[] = [];
  try {
    await job.submit(
      ["2026-01-01", "2026-01-02"].map((day) => ({ dagId: "hello", logicalDate: new Date(day) })),
    );
    for await (const run of job.collect()) ended.push(`${run.runId} ${run.state}`);
  } finally {
    await job.close();
  }
  expect(ended.sort()).toEqual([
    "manual__2026-01-01T00:00:00.000Z success",
    "manual__2026-01-02T00:00:00.000Z success",
  ]);
  const env = { TRADEWIND_HOME: standalone.home };
  const { code, stdout } = await runCaptured(
    ["tasks", "logs", "hello", "manual__2026-01-01T00:00:00.000Z", "greet"],
    { env },
  );
  expect([code, stdout]).toEqual([0, expect.stringContaining("greeting world")]);
  const runs = await runCaptured(["runs", "list", "hello", "--json"], { env });
  expect(JSON.parse(runs.stdout)).toHaveLength(3);
});
