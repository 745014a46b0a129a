/** The executor with a DAG of the SDK, bundled, in a child. */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { PROGRAM } from "@tradewind/sdk/program";
import { expect, test } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";

const SOURCE = `
import { dag, Operator, signal } from "@tradewind/sdk";

const rows = signal("rows");

class Serve extends Operator {
  constructor() {
    super();
    this.setSignal(rows);
  }
  execute() {}
  async onSignal(heard, ctx) {
    ctx.log.info("heard " + heard.key, { value: heard.value, task: ctx.taskId, run: ctx.run.id });
    if (heard.value === "throw") throw new Error("cannot say");
    return heard.value;
  }
}

export default dag("testing", (d) => {
  const one = d.task("one", () => 20);
  d.task("two", { inputs: { one } }, ({ one }, ctx) => {
    ctx.log.info("adding", { one });
    return one + 1;
  });
  d.task("broken", { onFailure: (ctx) => console.log("callback ran") }, () => { throw new Error("typed wrong"); });
  d.task("stream", { lifetime: "streaming", onSuccess: () => console.log("callback ran") }, async (_, ctx) => {
    console.log("streaming");
    while (!ctx.abort.aborted) await new Promise((resolve) => setTimeout(resolve, 2));
    await ctx.send(rows, 1, { onSuccess: true });
    return { stopped: ctx.abort.reason.message };
  });
  d.operator("serve", new Serve());
  d.task("asks", async (_, ctx) => { await ctx.variable("nowhere"); });
  d.task("returns", () => ({ at: 1n }));
  d.task("unanswered", async (_, ctx) => { await ctx.variable("broken"); });
  d.task("secret", async (_, ctx) => { throw new Error("with " + (await ctx.connection("warehouse")).password); });
});
`;

async function bundled(under: ExecutorUnderTest) {
  return { bundleHash: await under.bundle(SOURCE, { sourcemap: "inline" }), conf: null };
}

test("a DAG of the SDK runs in a task process", async () => {
  await using under = await ExecutorUnderTest.start();
  const bundle = await bundled(under);
  expect(await under.output("one", bundle)).toBe(20);
  const two = under.submit("two", { ...bundle, inputs: { one: { state: "success", value: 20 } } });
  expect(await under.ended(two.id)).toMatchObject({ kind: "success", output: 21 });
  const lines = await under.log(two.id);
  expect(lines).toContainEqual(
    expect.objectContaining({ source: "task", message: "adding", fields: { one: 20 } }),
  );

  const broken = under.submit("broken", bundle);
  const outcome = await under.ended(broken.id);
  expect(outcome).toMatchObject({
    kind: "failed",
    retry: true,
    error: { message: "typed wrong" },
  });
  const log = await readFile(under.logPath(broken.logKey), "utf8");
  // Callbacks run after the outcome is stored.
  expect(log).not.toContain("callback ran");
  // The source map points to the author's file, not to the bundle.
  expect(log).toMatch(/dag\.ts:\d+/);

  expect(await under.run("secret", bundle)).toMatchObject({ kind: "failed", error: { message: "with ***" } });
});

test("the log of an engine error has its code, and only frames of the author", async () => {
  await using under = await ExecutorUnderTest.start();
  const bundle = await bundled(under);
  const errors = async (taskId: string) => {
    const { id: attempt } = under.submit(taskId, bundle);
    await under.ended(attempt);
    const lines = (await under.log(attempt)).filter(({ level }) => level === "error");
    return lines.map(({ message }) => message);
  };
  expect(await errors("asks")).toEqual([
    expect.stringMatching(/^TaskError: variable "nowhere" is not set.* \[TW_VARIABLE_MISSING\]$/),
    expect.stringMatching(/^ +at async .*dag\.ts:\d+:\d+\)?$/),
  ]);
  expect(await errors("returns")).toEqual([expect.stringMatching(/^TaskError: .* \[TW_OUTPUT_NOT_JSON\]$/)]);
  expect(await errors("unanswered")).toEqual([expect.stringMatching(/^Error: .* \[TASK_SERVICE_FAILED\]$/)]);
});

test("a function that returns after a graceful stop has succeeded, and no callback has run", async () => {
  await using under = await ExecutorUnderTest.start();
  const { id: attempt } = under.submit("stream", await bundled(under));
  while (!JSON.stringify(await under.log(attempt)).includes("streaming")) await sleep(5);
  under.executor.cancel(attempt, "closed", { graceMs: 600_000, keepsSuccess: true });
  expect(await under.ended(attempt)).toEqual({
    kind: "success",
    output: { stopped: "closed" },
    skip: [],
    signals: [{ namespace: "default", key: "rows", value: 1 }],
  });
  expect(JSON.stringify(await under.log(attempt))).not.toContain("callback ran");
});

test("the onSignal of an operator runs in a task process", async () => {
  await using under = await ExecutorUnderTest.start();
  const bundle = await bundled(under);
  const ask = async (value: string, taskId = "serve") => {
    const signal = { namespace: "default", key: "rows", value, version: 4 };
    return await under.answered(under.submitReaction("rows", { ...bundle, taskId, signal }).id);
  };
  const answer = await ask("RESTART");
  expect(answer).toMatchObject({ action: "RESTART", error: null });
  expect(await under.log(answer.reactionId)).toContainEqual(
    expect.objectContaining({
      source: "task",
      message: "heard rows",
      fields: { value: "RESTART", task: "serve", run: "manual__1" },
    }),
  );
  expect(await ask("NONE")).toMatchObject({ action: "NONE", error: null });
  expect(await ask("START", "one")).toMatchObject({ action: "NONE", error: null });
  expect(await ask("throw")).toMatchObject({ action: null, error: { message: "cannot say" } });
  expect(await ask("PERHAPS")).toMatchObject({ action: null, error: { code: "TW_SIGNAL_ACTION" } });
  expect(await ask("START", "nobody")).toMatchObject({ action: null, error: { code: "TW_TASK_UNKNOWN" } });
});

test("engine and SDK use the same symbol", () => {
  expect(PROGRAM).toBe(Symbol.for("tradewind.program"));
});
