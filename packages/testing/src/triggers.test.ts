/** Entries for triggers: joint waits, custom classes, and missing entries. */
import {
  DateTimeTrigger,
  dag,
  endWith,
  FileSensor,
  FileTrigger,
  PollTrigger,
  Trigger,
  type TriggerContext,
  type Waitable,
  WebhookTrigger,
} from "@tradewind/sdk";
import { describe, expect, test } from "vitest";
import { after, runDag, type Triggers } from "./index.ts";

const HOUR = 3_600_000;
const FILE = { path: "/a", size: 1, mtime: "2026-03-01T00:00:00.000Z" };

/** A DAG of one function with one wait. */
function waitingFor<Event>(what: Waitable<Event>, timeout?: "50ms" | "1h") {
  return dag("waiting", (d) => {
    // The compiler cannot check that every event of these tests is JSON.
    d.task("t", async (_, ctx) => (await ctx.until("x", what as Waitable<string>, { timeout })) ?? null);
  });
}

describe("entries", () => {
  const hook = new WebhookTrigger({ name: "x" });
  const event = (body: string) => ({ body, headers: {} });

  test("prefers the most specific key", async () => {
    const said: Triggers = { "tradewind.webhook": event("kind"), t: event("task"), "t/x": event("step") };
    const { "t/x": _, ...withoutStep } = said;
    const outputs = async (triggers: Triggers) => (await runDag(waitingFor(hook), { triggers })).outputs["t"];
    expect(await outputs(said)).toEqual(event("step"));
    expect(await outputs(withoutStep)).toEqual(event("task"));
    expect(await outputs({ "tradewind.webhook": event("kind") })).toEqual(event("kind"));
  });

  test("does not fire a trigger before its wake time", async () => {
    const now = "2026-03-01T00:00:00Z";
    const late = new JobDone({ job: "x", wakeAt: "2026-03-02T00:00:00Z" });
    const run = await runDag(waitingFor(late), { now, triggers: { "acme.job_done": after("1h", "ok") } });
    expect(run.outputs["t"]).toBe("ok");
    expect(run.timeline.at(-1)!.atMs).toBe(24 * HOUR);
  });

  test("overrides the moment of a time trigger", async () => {
    const never = new DateTimeTrigger({ moment: "2099-01-01" });
    const run = await runDag(waitingFor(never), { triggers: { "t/x": "at once" } });
    expect(run.outputs["t"]).toBe("at once");
    expect(run.timeline.at(-1)!.atMs).toBe(0);
  });

  test("types the events of built-in triggers", () => {
    const good: Triggers = {
      "tradewind.file": FILE,
      anything: 5,
      "acme.x": (args: { job: string }) => args.job,
    };
    // @ts-expect-error: a file has a path, a size and a time.
    const bad: Triggers = { "tradewind.file": { path: "/a" } };
    expect([good, bad]).toHaveLength(2);
  });

  test("rejects an event that is not JSON", async () => {
    const triggers = { "tradewind.webhook": () => ({ body: 1n, headers: {} }) as never };
    await expect(runDag(waitingFor(hook), { triggers })).rejects.toMatchObject({
      code: "TW_TEST_BAD_OPTION",
      message: 'triggers: the event of "tradewind.webhook" must be JSON',
    });
  });
});

describe("joint waits", () => {
  const both = dag("both", (d) => {
    d.task("t", async (_, ctx) => {
      const { file, hour } = await ctx.until("x", {
        file: new FileTrigger({ path: "/a" }),
        hour: new DateTimeTrigger({ moment: "2026-03-01T08:00:00Z" }),
      });
      return [file.path, hour];
    });
  });
  const now = "2026-03-01T00:00:00Z";

  test("fire with all events when the last member fires", async () => {
    const run = await runDag(both, { now, triggers: { "tradewind.file": after("2h", FILE) } });
    expect(run.outputs["t"]).toEqual(["/a", "2026-03-01T08:00:00.000Z"]);
    expect(run.timeline.at(-1)!.atMs).toBe(8 * HOUR);
    const late = await runDag(both, { now, triggers: { "t/x/file": after("9h", FILE) } });
    expect(late.timeline.at(-1)!.atMs).toBe(9 * HOUR);
  });

  test("fail and end with the first member that does", async () => {
    const failed = await runDag(both, { now, triggers: { "t/x/file": after("1h", new Error("no disk")) } });
    expect(failed.task("t").error?.message).toContain('"file": no disk');
    expect(failed.timeline.at(-1)!.atMs).toBe(HOUR);
    const ended = await runDag(both, { now, triggers: { "tradewind.file": endWith.skip("none today") } });
    expect(ended.task("t")).toMatchObject({ state: "skipped", reason: "none today" });
  });

  test("accept one entry for the whole wait", async () => {
    const events = { file: { path: "/b" }, hour: "now" };
    expect((await runDag(both, { triggers: { "t/x": events } })).outputs["t"]).toEqual(["/b", "now"]);
  });
});

/** The events of triggers that were run. */
const lives: string[] = [];

class JobDone extends PollTrigger<{ job: string; wakeAt?: string }, string> {
  static id = "acme.job_done";
  static interval = 5;
  #polls = 0;
  override wakeAt() {
    return this.args.wakeAt === undefined ? null : new Date(this.args.wakeAt);
  }
  async poll(ctx: TriggerContext) {
    this.#polls++;
    if (this.args.job === "cancelled") return endWith.fail("cancelled", { retry: false });
    if (this.#polls < 3) return undefined;
    ctx.log.info("done", { user: (await ctx.connection("jobs"))?.login ?? null });
    return `${this.args.job} ${await ctx.variable("suffix", "-")}`;
  }
  override cleanup() {
    lives.push(`cleanup ${this.args.job}`);
  }
}

class Mail extends Trigger<{ box: string }, string> {
  static id = "acme.mail";
  async *run({ abort }: TriggerContext) {
    if (this.args.box === "empty") return;
    if (this.args.box === "silent") {
      await new Promise((resolve) => abort.addEventListener("abort", resolve));
      lives.push("aborted");
      return;
    }
    yield "hello";
    await new Promise((resolve) => setTimeout(resolve, 10));
    lives.push(abort.aborted ? "too late" : "acknowledged");
  }
}

describe("custom trigger classes", () => {
  const triggers = { "acme.job_done": JobDone, "acme.mail": Mail };

  test("run with the log, variables and connections of the run", async () => {
    lives.length = 0;
    const run = await runDag(waitingFor(new JobDone({ job: "7" })), {
      triggers,
      variables: { suffix: "ok" },
      connections: { jobs: { login: "ann" } },
    });
    expect(run.outputs["t"]).toBe("7 ok");
    // It polls until it is aborted.
    expect(run.logs["t"]?.[0]).toMatchObject({ level: "info", message: "done", fields: { user: "ann" } });
    expect(lives).toEqual(["cleanup 7"]);
  });

  test("resume after the event, so that they can acknowledge it", async () => {
    lives.length = 0;
    const run = await runDag(waitingFor(new Mail({ box: "in" })), { triggers });
    expect(run.outputs["t"]).toBe("hello");
    expect(lives).toEqual(["acknowledged"]);
  });

  test("may end, fail, or return without an event", async () => {
    const ended = await runDag(waitingFor(new JobDone({ job: "cancelled" })), { triggers });
    expect(ended.task("t").error).toMatchObject({ message: "cancelled", code: "TASK_FAILED_BY_TRIGGER" });
    const empty = await runDag(waitingFor(new Mail({ box: "empty" })), { triggers });
    expect(empty.task("t").error?.message).toContain("without an event");
  });

  test("are aborted when the wait times out in real time", async () => {
    lives.length = 0;
    const run = await runDag(waitingFor(new Mail({ box: "silent" }), "50ms"), { triggers });
    expect(run.task("t").error).toMatchObject({ code: "TW_WAIT_TIMEOUT" });
    expect(run.timeline.at(-1)!.atMs).toBe(50);
    expect(lives).toEqual(["aborted"]);
  });

  test("run in a joint wait", async () => {
    const joint = dag("joint", (d) => {
      d.task("t", async (_, ctx) => {
        const { job, mail } = await ctx.until("x", {
          job: new JobDone({ job: "7" }),
          mail: new Mail({ box: "in" }),
        });
        return `${job} ${mail}`;
      });
    });
    const run = await runDag(joint, { triggers, connections: { jobs: {} } });
    expect(run.task("t").error).toBeUndefined();
    expect(run.outputs["t"]).toBe("7 - hello");
  });
});

describe("a trigger without an entry", () => {
  test("is rejected with the remedy", async () => {
    const hook = waitingFor(new WebhookTrigger({ name: "x" }), "1h");
    await expect(runDag(hook)).rejects.toMatchObject({
      code: "TW_TEST_NO_EVENT",
      message:
        'task "t" (x) waits for "tradewind.webhook", which has no entry in `triggers`; give its event: runDag(dag, { triggers: { "tradewind.webhook": … } })',
    });
    await expect(runDag(waitingFor(new Mail({ box: "in" })))).rejects.toThrow(
      /"acme.mail".*give its event, or its class, which is then run/,
    );
  });

  test("is rejected for a class that cannot be found, and for an unknown key", async () => {
    class Inner extends Trigger<void, string> {
      static id = "test.inner";
      async *run() {
        yield "x";
      }
    }
    await expect(runDag(waitingFor(new Inner()))).rejects.toMatchObject({
      code: "TW_TEST_NO_EVENT",
      problem: expect.stringContaining("must be at the top level of its module"),
    });
    const hook = waitingFor(new WebhookTrigger({ name: "x" }));
    const given = (triggers: Triggers) => runDag(hook, { triggers });
    const bad = (message: string) => ({
      code: "TW_TEST_BAD_OPTION",
      message: expect.stringContaining(message),
    });
    await expect(given({ "tradewind.webhok": 1 })).rejects.toMatchObject(
      bad('no trigger "tradewind.webhok"; did you mean "tradewind.webhook"?'),
    );
    await expect(given({ "tradewind.telegram": 1 })).rejects.toMatchObject(
      bad("built-in triggers: tradewind.all"),
    );
    await expect(given({ "u/x": 1 })).rejects.toMatchObject(bad('no task "u"; did you mean "t/x"?'));
    await expect(given({ "other/x": 1 })).rejects.toMatchObject(bad('no task "other"; tasks: t'));
    await expect(given({ "t/xx": 1 })).rejects.toMatchObject({
      code: "TW_TEST_NO_EVENT",
      problem: expect.stringContaining('has "t/xx": did you mean "t/x"?'),
    });
    const run = await given({ "acme.own": 1, "test.inner": Inner, t: { body: 1, headers: {} } });
    expect(run.state).toBe("success");
  });

  test("lets a sensor time out with its own code", async () => {
    const sensors = dag("sensors", (d) => {
      d.operator("file", new FileSensor({ path: "/nowhere", timeout: "1h" }));
    });
    const run = await runDag(sensors, { triggers: { file: undefined } });
    expect(run.task("file").error).toMatchObject({ code: "TW_SENSOR_TIMEOUT" });
  });

  test("is rejected for a sensor that polls, although its task would be retried", async () => {
    const looking = dag("looking", (d) => {
      d.operator("file", new FileSensor({ path: "/a", mode: "poke" }), { retries: 5 });
    });
    await expect(runDag(looking)).rejects.toMatchObject({ code: "TW_TEST_NO_EVENT" });
    await expect(runDag(looking, { triggers: { file: endWith.skip() } })).rejects.toThrow(/polls/);
  });

  test("is rejected for a wait without an end", async () => {
    const hook = waitingFor(new WebhookTrigger({ name: "x" }));
    await expect(runDag(hook, { triggers: { t: undefined } })).rejects.toMatchObject({
      code: "TW_TEST_NEVER_FIRES",
      message: expect.stringContaining('task "t" waits for "tradewind.webhook", which does not fire'),
    });
  });
});
