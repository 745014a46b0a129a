/** `onCancel` runs as in the engine. */
import {
  type CancelContext,
  dag,
  Operator,
  PollTrigger,
  restart,
  signal,
  type TaskContext,
  TimeDeltaTrigger,
} from "@tradewind/sdk";
import { beforeEach, expect, test } from "vitest";
import { runDag } from "./index.ts";

let calls: string[] = [];
beforeEach(() => {
  calls = [];
});

class Done extends PollTrigger<{ job: string }, { rows: number }> {
  static id = "test.done";
  poll() {
    return undefined;
  }
  override onCancel(ctx: CancelContext) {
    calls.push(`trigger ${this.args.job} ${ctx.cause}`);
  }
}

class Job extends Operator<{ job: string }, number> {
  execute() {
    const { job } = this.args;
    return this.defer({ trigger: new Done({ job }), method: "go", kwargs: { id: 7 }, timeout: 50 });
  }
  go(_ctx: TaskContext, event: { rows: number }) {
    return event.rows;
  }
  override onCancel(ctx: CancelContext<{ id: number }>) {
    calls.push(`operator ${this.args.job} ${ctx.kwargs.id} ${ctx.cause} ${ctx.taskId}`);
  }
}

const onCancel = (ctx: CancelContext) => void calls.push(`task ${ctx.wait} ${ctx.cause}`);

test("runs the hooks of trigger, operator and task in this order after a timeout", async () => {
  const late = dag("late", (d) => {
    d.operator("a", new Job({ job: "j" }), { onCancel });
  });
  const run = await runDag(late, { triggers: { "test.done": Done } });
  expect(run.state).toBe("failed");
  expect(calls).toEqual(["trigger j timeout", "operator j 7 timeout a", "task null timeout"]);
});

test("runs no hook after an event, or if a function handles the timeout", async () => {
  const fine = dag("fine", (d) => {
    d.operator("a", new Job({ job: "j" }), { onCancel });
    d.task("b", { onCancel }, async (_, ctx) => {
      await ctx.until("b", new Done({ job: "b" }), { timeout: "1h" }).catch(() => null);
    });
  });
  const run = await runDag(fine, { triggers: { "a/go": { rows: 1 }, "test.done": undefined } });
  expect(run.state).toBe("success");
  expect(calls).toEqual([]);
});

test("cancels waits on a run timeout and on a restart", async () => {
  const timed = dag("timed", { runTimeout: "2h" }, (d) => {
    d.task("b", { onCancel }, (_, ctx) => ctx.until("b", new TimeDeltaTrigger({ delta: "1d" })));
  });
  expect((await runDag(timed)).state).toBe("failed");
  expect(calls).toEqual(["task b cancelled"]);
  const again = signal("again");
  const driven = dag("driven", { stop: signal("stop") }, (d) => {
    d.task("c", { onCancel, on: restart(again) }, (_, ctx) =>
      ctx.until("c", new TimeDeltaTrigger({ delta: "1h" })),
    );
  });
  await runDag(driven, { signals: [{ after: "30m", key: "again", value: null }], until: "3h" });
  expect(calls).toEqual(["task b cancelled", "task c cancelled"]);
});

test("logs an onCancel that fails and runs the others", async () => {
  const late = dag("late", (d) => {
    d.operator("a", new Job({ job: "j" }), {
      onCancel: () => {
        throw new Error("no such job");
      },
    });
  });
  const run = await runDag(late, { triggers: { "test.done": undefined } });
  expect(calls).toEqual(["operator j 7 timeout a"]);
  expect(JSON.stringify(run.logs)).toContain("no such job");
});
