import { expect, test } from "vitest";
import { attempt, RecordingHost } from "../../test/attempt-call.ts";
import { dag, type TriggerDagRunArgs, TriggerDagRunOperator } from "../index.ts";

function of(args: Omit<TriggerDagRunArgs, "dagId"> = {}) {
  return dag("x", (d) => void d.operator("t", new TriggerDagRunOperator({ dagId: "report", ...args })));
}

test("creates one run per try, also if the call is repeated", async () => {
  const host = new RecordingHost();
  const first = await attempt(of({ conf: { region: "eu" } }), "t", { host });
  const { runId } = host.runs[0]!;
  expect(first).toEqual({ kind: "success", output: { dagId: "report", runId, state: null }, skip: [] });
  expect(host.runs[0]).toEqual({ dagId: "report", runId, conf: { region: "eu" }, logicalDate: null });
  expect(runId).toMatch(/^triggered__2026-01-02T00:00:00\.000Z__[0-9a-f]{24}$/);
  await attempt(of(), "t", { host, attempt: "attempt-2" });
  await attempt(of(), "t", { host, tryNumber: 2 });
  await attempt(of(), "t", { host, mapIndex: 0 });
  const ids = host.runs.map((request) => request.runId);
  expect(ids[1]).toBe(runId);
  expect(new Set(ids).size).toBe(3);
  expect(host.lines.map((line) => line.message)).toEqual(
    ids.map((id, at) => `${at === 1 ? "found" : "made"} run ${id} of dag report`),
  );
});

test("accepts a run id and a logical date", async () => {
  const host = new RecordingHost();
  await attempt(of({ runId: "mine", logicalDate: "2026-01-31" }), "t", { host });
  expect(host.runs).toEqual([
    { dagId: "report", runId: "mine", conf: {}, logicalDate: "2026-01-31T00:00:00.000Z" },
  ]);
  expect(() => of({ logicalDate: "soon" })).toThrow(/logicalDate must be a Date/);
});

test("waits without a worker and fails if the run fails", async () => {
  const waiting = of({ runId: "mine", wait: true, timeout: "1h" });
  expect(await attempt(waiting, "t")).toMatchObject({
    kind: "deferred",
    trigger: {
      kind: "tradewind.dagrun",
      args: { dagId: "report", runId: "mine", states: ["failed", "success"] },
    },
    method: "ended",
    timeoutMs: 3_600_000,
  });
  const ended = (state: string) => ({
    resumePoint: {
      method: "ended",
      kwargs: {},
      event: { dagId: "report", runId: "mine", logicalDate: null, state },
    },
  });
  expect(await attempt(waiting, "t", ended("success"))).toMatchObject({
    output: { dagId: "report", runId: "mine", state: "success" },
  });
  expect(await attempt(waiting, "t", ended("failed"))).toMatchObject({
    kind: "failed",
    retry: true,
    error: {
      code: "TW_DAG_RUN_FAILED",
      message: expect.stringMatching(
        /^run mine of dag report ended as failed; .*tradewind runs show report mine/,
      ),
    },
  });
  const lenient = of({ wait: true, failOn: [] });
  expect(await attempt(lenient, "t", ended("failed"))).toMatchObject({ kind: "success" });
});

test("rejects a conf that is not JSON without a retry", async () => {
  expect(await attempt(of({ conf: { at: new Date() as never } }), "t")).toMatchObject({
    retry: false,
    error: { code: "TW_STEP_NOT_JSON", message: expect.stringContaining("conf.at is a Date") },
  });
});
