/** Waits for the first of several triggers. */
import {
  all,
  any,
  dag,
  FileTrigger,
  HttpTrigger,
  Operator,
  signal,
  type TaskContext,
  TimeDeltaTrigger,
  Trigger,
  type TriggerContext,
  type Waitable,
  WebhookTrigger,
} from "@tradewind/sdk";
import { beforeEach, describe, expect, test } from "vitest";
import { after, type RunOptions, runDag } from "./index.ts";

const HOUR = 3_600_000;
const file = new FileTrigger({ path: "/a" });
const hook = new WebhookTrigger({ name: "approval" });
const FILE = { path: "/a", size: 1, mtime: "2026-03-01T00:00:00.000Z" };
const CALL = { body: "yes", headers: {} };
const hours = (delta: `${number}h`) => new TimeDeltaTrigger({ delta });
const sent = signal<number>("sent");

let aborts: string[] = [];
beforeEach(() => {
  aborts = [];
});

/** Fires when its promise resolves. */
class Eventually extends Trigger<void, string> {
  static id = "test.eventually";
  static event: Promise<string> = new Promise(() => {});
  override async *run({ abort }: TriggerContext) {
    const aborted = new Promise<never>((_, reject) => {
      abort.addEventListener("abort", () => {
        aborts.push((abort.reason as { kind: string }).kind);
        reject(abort.reason);
      });
    });
    yield await Promise.race([Eventually.event, aborted]);
  }
  override async cleanup() {
    aborts.push("cleaned up");
  }
}

/** The result of a function that waits for `what`, and when it ended, in hours since the run began. */
async function waited<Event>(what: Waitable<Event>, options: RunOptions) {
  const defined = dag("waiting", (d) => {
    // The compiler cannot check that every event of these tests is JSON.
    d.task("t", async (_, ctx) => (await ctx.until("x", what as Waitable<string>)) ?? null);
  });
  const run = await runDag(defined, options);
  return { run, output: run.outputs["t"] as unknown, hours: run.timeline.at(-1)!.atMs / HOUR };
}

describe("any()", () => {
  test("fires with the first trigger on the clock of the run, and names it", async () => {
    const triggers = { "tradewind.file": after("3h", FILE), "tradewind.webhook": after("1h", CALL) };
    expect(await waited(any({ file, hook }), { triggers })).toMatchObject({
      output: { name: "hook", event: CALL },
      hours: 1,
    });
    expect(
      await waited(any(file, hook, hours("2h")), { triggers: { "t/x/0": FILE, "t/x/1": undefined } }),
    ).toMatchObject({
      output: { index: 0, event: FILE },
      hours: 0,
    });
    expect(await waited(any({ file, late: hours("2h") }), { triggers })).toMatchObject({
      output: { name: "late" },
      hours: 2,
    });
  });

  test("treats a trigger without an entry as one that does not fire", async () => {
    const run = await waited(any({ file, hook }), { triggers: { "tradewind.webhook": CALL } });
    expect(run.output).toMatchObject({ name: "hook" });
    await expect(waited(any({ file, hook }), {})).rejects.toMatchObject({ code: "TW_TEST_NO_EVENT" });
  });

  test("fails with the first trigger that fails, and names it", async () => {
    const triggers = { "tradewind.http": new Error("no such host") };
    const http = new HttpTrigger({ url: "https://a.example" });
    const { run } = await waited(any({ http, late: hours("1h") }), { triggers });
    expect(run.task("t").error).toMatchObject({
      code: "TW_TRIGGER_FAILED",
      message: expect.stringContaining('"http": no such host'),
    });
  });

  test("ends with a signal that is sent before a later moment", async () => {
    const signals = [{ key: "sent", value: 7, after: "2h" as const }];
    const { output, hours: ended } = await waited(any({ sent, late: hours("5h") }), { signals });
    expect(output).toMatchObject({ name: "sent", event: { value: 7 } });
    expect(ended).toBe(2);
  });

  test("works inside a joint wait, and with a joint wait inside it", async () => {
    const signals = [{ key: "sent", value: 7, after: "2h" as const }];
    const triggers = { "tradewind.webhook": after("3h", CALL) };
    const first = any({ sent, never: signal("never") });
    expect(await waited(all({ first, hook }), { signals, triggers })).toMatchObject({
      output: { first: { name: "sent" }, hook: CALL },
      hours: 3,
    });
    const both = all({ sent, hook });
    expect(await waited(any({ both, late: hours("5h") }), { signals, triggers })).toMatchObject({
      output: { name: "both", event: { sent: { value: 7 }, hook: CALL } },
      hours: 3,
    });
  });

  test("works in an operator and with d.trigger", async () => {
    class Deferring extends Operator<void, string> {
      override async execute() {
        return this.defer({ trigger: any({ file, hook }), method: "go" });
      }
      async go(_: TaskContext, first: { readonly name: "file" | "hook" }) {
        return first.name;
      }
    }
    const defined = dag("places", (d) => {
      d.operator("operator", new Deferring());
      d.trigger("node", any(file, hook));
    });
    const run = await runDag(defined, { triggers: { "tradewind.file": FILE } });
    expect(run.outputs).toEqual({ operator: "file", node: { index: 0, event: FILE } });
  });
});

describe.each(["virtual", "real"] as const)("a running trigger on a %s clock", (clock) => {
  const triggers = { "test.eventually": Eventually };

  test("comes first if it fires before a moment", async () => {
    Eventually.event = Promise.resolve("soon");
    const what = any({ job: new Eventually(), late: hours("1h") });
    expect((await waited(what, { clock, triggers })).output).toEqual({ name: "job", event: "soon" });
  });

  test("is aborted as cancelled and cleaned up if a moment comes first", async () => {
    Eventually.event = new Promise(() => {});
    const what = any({ job: new Eventually(), late: new TimeDeltaTrigger({ delta: "100ms" }) });
    expect((await waited(what, { clock, triggers })).output).toMatchObject({ name: "late" });
    expect(aborts).toEqual(["cancelled", "cleaned up"]);
  });

  test("is aborted if a signal comes first", async () => {
    Eventually.event = new Promise(() => {});
    const defined = dag("signalled", (d) => {
      d.task("waits", async (_, ctx) => (await ctx.until("x", any({ job: new Eventually(), sent }))).name);
      d.task("sends", async (_, ctx) => void (await ctx.send(sent, 1)));
    });
    const run = await runDag(defined, { clock, triggers });
    expect(run.outputs["waits"]).toBe("sent");
    expect(aborts).toEqual(["cancelled", "cleaned up"]);
  });
});

test("ends a joint wait with a signal that is sent while it waits", async () => {
  const signals = [{ key: "sent", value: 7, after: "2h" as const }];
  const { output, hours: ended } = await waited(all({ sent, soon: hours("1h") }), { signals });
  expect(output).toMatchObject({ sent: { value: 7 } });
  expect(ended).toBe(2);
});
