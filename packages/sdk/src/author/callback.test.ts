import { expect, test } from "vitest";
import { z } from "zod";
import { RecordingHost, taskCall } from "../../test/attempt-call.ts";
import { type CallbackContext, type Dag, dag } from "../index.ts";
import { type CallbackCall, PROGRAM } from "../runtime/program.ts";

function callback(defined: Dag, overrides: Partial<CallbackCall>) {
  const { run, conf } = taskCall(defined, "t");
  const host = new RecordingHost();
  return defined[PROGRAM].callback({
    taskId: null,
    event: "failure",
    run,
    tryNumber: 1,
    error: null,
    conf,
    host,
    ...overrides,
  });
}

test("runs each callback of the DAG and of a task", async () => {
  const seen: CallbackContext[] = [];
  const note = (ctx: CallbackContext) => void seen.push(ctx);
  const defined = dag("x", { onSuccess: note, onFailure: note }, (d) => {
    d.task("t", { onSuccess: note, onFailure: note, onRetry: note }, () => 1);
  });
  const error = { name: "Killed", message: "out of memory", stack: null, code: null };
  for (const taskId of [null, "t"]) {
    for (const event of ["success", "failure", "retry"] as const) {
      expect(await callback(defined, { taskId, event, error, tryNumber: 3, conf: { a: 1 } })).toEqual({
        ok: true,
      });
    }
  }
  expect(seen.map(({ taskId, event }) => [taskId, event])).toEqual([
    [null, "success"],
    [null, "failure"],
    ["t", "success"],
    ["t", "failure"],
    ["t", "retry"],
  ]);
  expect(seen[0]).toMatchObject({ error, tryNumber: 3, params: { a: 1 }, run: { id: "manual__1" } });
});

test("succeeds at once for a callback that does not exist", async () => {
  const defined = dag("x", (d) => void d.task("t", () => 1));
  expect(await callback(defined, { taskId: null })).toEqual({ ok: true });
  expect(await callback(defined, { taskId: "gone" })).toEqual({ ok: true });
});

test("returns the error of a callback as facts", async () => {
  const onFailure = () => {
    throw new Error("no network");
  };
  const defined = dag("x", { onFailure }, (d) => void d.task("t", () => 1));
  expect(await callback(defined, {})).toMatchObject({
    ok: false,
    error: { name: "Error", message: "no network" },
  });
});

test("runs a callback with null params if the conf is invalid", async () => {
  let params: unknown = "not called";
  const onFailure = (ctx: CallbackContext<{ n: number }>) => {
    params = ctx.params;
  };
  const defined = dag(
    "x",
    { params: z.object({ n: z.number() }), onFailure },
    (d) => void d.task("t", () => 1),
  );
  expect(await callback(defined, { conf: { n: "five" } })).toEqual({ ok: true });
  expect(params).toBeNull();
});
