import type { SignalArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import { beforeEach, describe, expect, it } from "vitest";
import { waitRow } from "../../../test/support/trigger-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../../test/support/triggerer-rig.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { senderName } from "../../model/signal/sender-name.ts";
import { silentLogger } from "../../service/logger.ts";
import { adhoc, Database } from "../../store/database/database.ts";
import { type SignalDraft, sendSignals } from "../../store/signal/signals.ts";
import { checkEngineTrigger, EngineTriggers, type Finding } from "./engine-triggers.ts";
import { SignalWatch } from "./signal-watch.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  return () => rig.close();
});

const PAST = "2020-01-01T00:00:00.000Z";

function args(key: string, more: Partial<SignalArgs> = {}): Json {
  const open = { where: null, equals: null, inRun: null, since: null, after: null };
  return { namespace: "default", key, ...open, ...more } as unknown as Json;
}

const drafts = (key: string, values: readonly Json[], more: Partial<SignalDraft> = {}): SignalDraft[] =>
  values.map((value) => ({ namespace: "default", key, value, sender: "test", ...more }));

/** Stores a signal without a wake-up. */
async function store(key: string, value: Json, more: Partial<SignalDraft> = {}): Promise<number> {
  const [sent] = await sendSignals(rig.db, drafts(key, [value], more));
  return sent!.id;
}

async function send(key: string, value: Json, more: Partial<SignalDraft> = {}): Promise<number> {
  const version = await store(key, value, more);
  await rig.notify("signals");
  return version;
}

const wait = async (given: Json) => (await rig.wait("tradewind.signal", null, { args: given })).attempt;
const event = (key: string, value: Json, version: number) => ({
  kind: "event",
  payload: { key, value, version },
  signals: [version],
});
const isWaiting = async (attempt: string) => (await waitRow(rig.db, attempt)).fired_at === null;
const isOwned = () => rig.until(async () => (await rig.owners()).every((owner) => owner !== null), "a claim");

describe("a wait for a signal", () => {
  it("fires with a signal that was sent just before, but not with one from before its start", async () => {
    await store("paid", "long ago");
    await rig.db.rows(adhoc("UPDATE signal SET created_at = now() - interval '1 hour'"));
    const version = await store("paid", "just before");
    await rig.triggerer({ lease: LONG_LEASE });
    const since = new Date(Date.now() - 60_000).toISOString();
    const before = await wait(args("paid", { since }));
    expect(await rig.outcome(before)).toEqual(event("paid", "just before", version));
    const fresh = await wait(args("paid"));
    await isOwned();
    expect(await isWaiting(fresh)).toBe(true);
    const next = await send("paid", "now");
    expect(await rig.outcome(fresh)).toEqual(event("paid", "now", next));
  });

  it("fires with the first match: by key, by part of the value, by the value, by the run that sent it", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const run = { dagId: "dag", runId: "manual__a/b", taskId: "t" };
    const own = await wait(args("n", { inRun: run && { dagId: run.dagId, runId: run.runId } }));
    const part = await wait(args("n", { where: { order: { id: 7 } } }));
    const level = await wait(args("n", { equals: { value: { order: { id: 8 } } } }));
    const other = await wait(args("n", { namespace: "team" }));
    const any = await wait(args("n"));
    const first = await send("n", { order: { id: 8, more: true } });
    expect(await rig.outcome(any)).toEqual(event("n", { order: { id: 8, more: true } }, first));
    const second = await send("n", { order: { id: 7, more: true } });
    expect(await rig.outcome(part)).toMatchObject({ payload: { version: second } });
    const third = await send("n", { order: { id: 8 } }, { sender: senderName({ ...run, runId: "other" }) });
    expect(await rig.outcome(level)).toMatchObject({ payload: { version: third } });
    const fourth = await send("n", "mine", { sender: senderName(run) });
    expect(await rig.outcome(own)).toMatchObject({ payload: { version: fourth, value: "mine" } });
    expect(await isWaiting(other)).toBe(true);
    await send("n", 1, { namespace: "team" });
    expect(await rig.outcome(other)).toMatchObject({ payload: { value: 1 } });
  });

  it("continues after the last consumed signal, with any number of signals", async () => {
    const sent = await sendSignals(
      rig.db,
      drafts(
        "tick",
        Array.from({ length: 450 }, (_, n) => n),
      ),
    );
    await rig.triggerer({ lease: LONG_LEASE });
    const [after, since] = [sent[10]!.id, PAST];
    const next = await wait(args("tick", { since, after }));
    const last = await wait(args("tick", { since, equals: { value: 449 } }));
    const later = await wait(args("tick", { since, after: sent[449]!.id }));
    expect(await rig.outcome(next)).toEqual(event("tick", 11, sent[11]!.id));
    expect(await rig.outcome(last)).toEqual(event("tick", 449, sent[449]!.id));
    expect(await isWaiting(later)).toBe(true);
    const version = await send("tick", "more");
    expect(await rig.outcome(later)).toEqual(event("tick", "more", version));
  });

  it("may name many keys at once, and follows the order of the log", async () => {
    const [a, b] = await sendSignals(rig.db, [...drafts("line.1", ["a"]), ...drafts("line.2", ["b"])]);
    await store("else", "c");
    await rig.triggerer({ lease: LONG_LEASE });
    const first = await wait(args("line.*", { since: PAST }));
    const second = await wait(args("line.*", { since: PAST, after: a!.id }));
    const third = await wait(args("line.*", { since: PAST, after: b!.id, namespace: "d*" }));
    expect(await rig.outcome(first)).toEqual(event("line.1", "a", a!.id));
    expect(await rig.outcome(second)).toEqual(event("line.2", "b", b!.id));
    expect(await isWaiting(third)).toBe(true);
    const version = await send("line.3", "d");
    expect(await rig.outcome(third)).toEqual(event("line.3", "d", version));
  });

  it("by pattern finds a signal that an older open transaction hid, without a wake-up", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const held = await wait(args("line.*"));
    const exact = await wait(args("line.1"));
    await isOwned();
    await rig.db.transaction(async (tx) => {
      await tx.rows(adhoc("INSERT INTO signal (namespace, key, sender) VALUES ('default', 'other', 'test')"));
      await send("line.1", "x");
      // The order within one key is known without waiting for other transactions.
      expect(await rig.outcome(exact)).toMatchObject({ payload: { value: "x" } });
      expect(await isWaiting(held)).toBe(true);
    });
    expect(await rig.outcome(held)).toMatchObject({ payload: { value: "x" } });
  });

  it("matches the engine's own signals about tasks and webhooks, whose keys have no order", async () => {
    await rig.db.rows(
      adhoc(`INSERT INTO signal (namespace, key, value, sender) VALUES ('task', 'dag/r/t', '"success"', 'scheduler'),
             ('webhook', 'orders', '{"body":1,"headers":{}}', 'caller')`),
    );
    await rig.triggerer({ lease: LONG_LEASE });
    const task = await wait(args("dag/r/t", { namespace: "task", since: PAST }));
    const hook = await wait(args("orders", { namespace: "webhook", since: PAST }));
    expect(await rig.outcome(task)).toMatchObject({ payload: { value: "success" } });
    expect(await rig.outcome(hook)).toMatchObject({ payload: { value: { body: 1 } } });
  });

  it("for the engine's own signals is woken by state changes", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const task = await wait(args("dag/r/t", { namespace: "task", where: { state: "success" } }));
    const anything = await wait(args("dag/*", { namespace: "*" }));
    await isOwned();
    const tell = (state: string) =>
      rig.db.rows(
        adhoc(`INSERT INTO signal (namespace, key, value, sender)
               VALUES ('task', 'dag/r/t', json_build_object('state', $1::text), 'scheduler:1')`),
        [state],
      );
    await tell("running");
    await rig.notify("states");
    expect(await rig.outcome(anything)).toMatchObject({ payload: { value: { state: "running" } } });
    await tell("success");
    await rig.notify("states");
    expect(await rig.outcome(task)).toMatchObject({ payload: { value: { state: "success" } } });
  });

  it("works with NOTIFY off", async () => {
    const database = Database.connect(rig.url);
    const { job } = await rig.triggerer({ wakeUps: new WakeUps(database, { enabled: false }) });
    await store("paid", 1);
    const attempts = [await wait(args("paid", { since: PAST })), await wait(args("*", { since: PAST }))];
    for (const attempt of attempts)
      expect(await rig.outcome(attempt)).toMatchObject({ payload: { value: 1 } });
    const open = await wait(args("late"));
    await rig.until(() => job.size === 1, "a claim");
    await store("late", 2);
    expect(await rig.outcome(open)).toMatchObject({ payload: { value: 2 } });
    await database.close();
  });

  it("can be a member of a joint wait", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const member = (given: Json) => ({
      ...{ kind: "tradewind.signal", args: given, source: "builtin", queue: "default", replicas: 1 },
      ...{ wake: null, timed: null },
    });
    const members = { a: member(args("a")), b: member(args("b.*")) };
    const { attempt } = await rig.wait("tradewind.all", null, { args: { members } as unknown as Json });
    await isOwned();
    await send("b.1", "B");
    await send("a", "A");
    expect(await rig.outcome(attempt)).toMatchObject({
      payload: { a: { key: "a", value: "A" }, b: { key: "b.1", value: "B" } },
    });
  });

  it("with invalid arguments fails without failing other waits", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const sound = await wait(args("paid"));
    const broken = await wait(args("paid", { since: "soon" }));
    expect(await rig.outcome(broken)).toMatchObject({ error: { code: "TRIGGER_ARGS_INVALID" } });
    await send("paid", 1);
    expect(await rig.outcome(sound)).toMatchObject({ payload: { value: 1 } });
  });

  it("can be checked once, by a task that polls", async () => {
    const begun = new Date(Date.now() - 60_000);
    const check = (given: Json) =>
      checkEngineTrigger(rig.db, { kind: "tradewind.signal", args: given }, begun);
    expect(await check(args("paid"))).toBeUndefined();
    await sendSignals(
      rig.db,
      drafts(
        "paid",
        Array.from({ length: 250 }, (_, n) => n),
      ),
    );
    expect(await check(args("paid", { equals: { value: 249 } }))).toMatchObject({ value: 249 });
    // Other transactions on the same server may hide the newest signals for a moment.
    await rig.until(async () => (await check(args("p*"))) !== undefined, "the signals to be readable");
    expect(await check(args("p*", { equals: { value: 248 } }))).toMatchObject({ value: 248 });
  });
});

it("polls signals only while there are waits for them", async () => {
  const engine = new EngineTriggers(rig.db);
  const asked: number[] = [];
  const found: Finding[] = [];
  const watch = new SignalWatch({
    ...{ database: rig.db, logger: silentLogger, engine, isDeaf: () => true, onRuns: () => {} },
    wakeUps: new WakeUps(rig.db),
    requestRead: (ms) => asked.push(ms),
    onFound: (findings) => found.push(...findings),
  });
  await watch.read();
  watch.receive("signals");
  expect(asked).toEqual([]);
  const trigger = { bundle_hash: null, dag_id: null, replicas: 1 as const, created_at: new Date(PAST) };
  engine.add({ ...trigger, id: 1, kind: "tradewind.signal", args: args("paid") });
  watch.receive("signals");
  // This wait is not for the engine's own signals.
  for (const topic of ["states", "runs", "fired", "tasks"] as const) watch.receive(topic);
  expect(asked).toHaveLength(1);
  await watch.read();
  expect(asked).toHaveLength(2);
  await store("paid", 1);
  await watch.read();
  expect(found).toMatchObject([{ kind: "outcome", id: 1, outcome: { payload: { value: 1 } } }]);
  watch.receive("signals");
  expect(asked).toHaveLength(2);

  for (const [id, namespace] of [
    [2, "run"],
    [3, "t*"],
  ] as const) {
    const before = asked.length;
    engine.add({ ...trigger, id, kind: "tradewind.signal", args: args("dag/*", { namespace }) });
    watch.receive("states");
    watch.receive("runs");
    watch.receive("tasks");
    expect(asked).toHaveLength(before + 2);
    engine.remove(id);
    watch.receive("states");
    expect(asked).toHaveLength(before + 2);
  }
});
