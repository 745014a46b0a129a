/** The guarantees for listeners: order, no loss, one active per name, retries, dead letters. */
import assert from "node:assert/strict";
import type { SignalService } from "../signal-service.ts";
import { Collector, type ConformanceSubject, FirstDeliveries, gate, within } from "./subject.ts";

const WRITERS = 20;
const LISTENERS = 5;
const EACH = 100;

export const LISTENER_CASES: Readonly<Record<string, (subject: ConformanceSubject) => Promise<void>>> = {
  "20 writers, 5 listeners: no signal is missed or delivered twice, each key is in version order": async ({
    another,
    service,
  }) => {
    // Without a transaction around effect and position, a listener may get signals again when its commit fails.
    const other = await another();
    const collectors = Array.from({ length: LISTENERS }, () =>
      service.hasTransactions ? new Collector() : new FirstDeliveries(),
    );
    for (const [at, collector] of collectors.entries())
      await (at % 2 === 0 ? service : other).listen(`l${at}`, { key: "k*" }, collector);
    const versions = new Map<string, number[]>();
    const writer = async (id: number) => {
      for (let n = 0; n < EACH; n++) {
        const key = `k${(id + n) % 7}`;
        const [sent] = await (id % 2 === 0 ? service : other).send([{ key, value: [id, n] }]);
        versions.set(key, [...(versions.get(key) ?? []), sent!.version]);
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, (_, id) => writer(id)));
    for (const collector of collectors) {
      await collector.reach(WRITERS * EACH);
      assert.equal(collector.signals.length, WRITERS * EACH);
      const byKey = Map.groupBy(collector.signals, ({ key }) => key);
      for (const [key, sent] of versions) {
        const got = byKey.get(key)!.map(({ version }) => version);
        assert.deepEqual(
          got,
          sent.toSorted((a, b) => a - b),
        );
      }
    }
  },

  "an invalid listen request is rejected at once with the reason": async ({ service }) => {
    const watcher = new Collector();
    const listen = service.listen.bind(service) as (...args: unknown[]) => Promise<unknown>;
    for (const [args, why] of [
      [["", {}, watcher], "name"],
      [["l".repeat(251), {}, watcher], "name"],
      [["l", null, watcher], "filter"],
      [["l", { key: "" }, watcher], "filter"],
      [["l", {}, {}], "process"],
      [["l", {}], "process"],
      [["l", {}, watcher, { from: "bogus" }], '"from"'],
      [["l", {}, watcher, { from: { since: new Date(Number.NaN) } }], '"from"'],
      [[null, {}, watcher, { from: { afterVersion: -1 } }], '"from"'],
      [["l", {}, watcher, { from: { position: "here" } }], "position"],
    ] as const) {
      await assert.rejects(
        within(listen(...args), () => `listen(${JSON.stringify(args)}) did not settle`),
        (error: Error) => error.message.includes(why),
      );
    }
    const send = service.send.bind(service) as (signals: unknown) => Promise<unknown>;
    await assert.rejects(send({ key: "k" }), { code: "SIGNAL_INVALID", message: /takes a list/ });
    await assert.rejects(send(["k"]), { code: "SIGNAL_INVALID", message: /"k" is not a signal/ });
  },

  "done resolves after a listener was stopped": async ({ service }) => {
    for (const name of ["l", null]) {
      const listening = await service.listen(name, { key: "k" }, new Collector());
      await listening.stop();
      await within(listening.done, () => "done did not resolve");
    }
  },

  "a signal that commits late is neither missed nor overtaken within its key": async ({
    sendLate,
    service,
  }) => {
    if (sendLate === undefined) return;
    const early = new Collector();
    await service.listen("early", { key: "*" }, early);
    const late = await sendLate([{ key: "late", value: 1 }]);
    const held = service.send([{ key: "late", value: 2 }]);
    const free = Array.from({ length: 20 }, (_, value) => service.send([{ key: `free${value % 3}`, value }]));
    await Promise.race([Promise.all(free), new Promise((resolve) => setTimeout(resolve, 200))]);
    const begunMeanwhile = new Collector();
    await service.listen("meanwhile", { key: "*" }, begunMeanwhile, { from: "start" });
    await late.commit();
    await Promise.all([held, ...free]);
    for (const collector of [early, begunMeanwhile]) {
      await collector.reach(22);
      const byKey = collector.byKey();
      assert.deepEqual(byKey.get("default/late"), [1, 2]);
      const frees = [0, 1, 2].flatMap((at) => byKey.get(`default/free${at}`)!);
      assert.deepEqual(
        frees.toSorted((a, b) => (a as number) - (b as number)),
        [...Array(20).keys()],
      );
    }
  },

  "a listener resumes at its position, in any process": async ({ another, service }) => {
    const first = new Collector();
    const listening = await service.listen("l", { key: "k" }, first);
    await service.send([{ key: "k", value: 1 }]);
    await first.reach(1);
    assert.ok(listening.isActive && listening.position !== null);
    await listening.stop();
    await service.send([
      { key: "k", value: 2 },
      { key: "k", value: 3 },
    ]);
    const second = new Collector();
    // `from` applies to new listeners only.
    await (await another()).listen("l", { key: "k" }, second, { from: "start" });
    await second.reach(2);
    assert.deepEqual([first.values, second.values], [[1], [2, 3]]);
  },

  "one listener is active per name; another takes over when it stops": async ({ another, service }) => {
    const first = new Collector();
    const second = new Collector();
    const options = { leaseMs: 600 };
    const one = await service.listen("l", { key: "k" }, first, options);
    const two = await (await another()).listen("l", { key: "k" }, second, options);
    assert.deepEqual([one.isActive, two.isActive], [true, false]);
    await service.send([{ key: "k", value: 1 }]);
    await first.reach(1);
    await one.stop();
    await service.send([{ key: "k", value: 2 }]);
    await second.reach(1);
    assert.deepEqual([first.values, second.values], [[1], [2]]);
  },

  "a listener that hangs loses its name, and its later commits are rejected": async (subject) => {
    const { another, effects, service } = subject;
    const door = gate();
    const began = gate();
    const slow = new Collector(async (signals, tx) => {
      if (tx !== null) await effects?.note(tx, `slow ${signals[0]?.value}`);
      began.open();
      await door.opened;
    });
    const options = { leaseMs: 400 };
    const one = await service.listen("l", { key: "k" }, slow, options);
    await service.send([{ key: "k", value: 1 }]);
    await began.opened;
    const quick = new Collector(async (signals, tx) => {
      if (tx !== null) await effects?.note(tx, `quick ${signals[0]?.value}`);
    });
    const two = await (await another()).listen("l", { key: "k" }, quick, options);
    await quick.reach(1);
    door.open();
    await one.stop();
    await service.send([{ key: "k", value: 2 }]);
    await quick.reach(2);
    assert.deepEqual(quick.values, [1, 2]);
    assert.ok(two.isActive);
    await two.stop();
    if (service.hasTransactions && effects !== undefined)
      assert.deepEqual(await effects.read(), ["quick 1", "quick 2"]);
  },

  "a signal whose watcher throws is retried; its key waits, the other keys continue": async ({ service }) => {
    let failures = 0;
    const others = new Collector();
    const collector = new Collector(async (signals) => {
      if (failures < 2 && signals.some(({ value }) => value === "bad")) {
        failures++;
        throw new Error("not yet");
      }
      await others.process(signals, null);
    });
    await service.listen("l", { key: "*" }, collector, { backoffMs: 150 });
    await service.send([
      { key: "a", value: 1 },
      { key: "b", value: "bad" },
      { key: "a", value: 2 },
      { key: "b", value: "after" },
    ]);
    await service.send([
      { key: "a", value: 3 },
      { key: "b", value: "last" },
    ]);
    await collector.reach(6);
    assert.deepEqual(collector.byKey().get("default/a"), [1, 2, 3]);
    assert.deepEqual(collector.byKey().get("default/b"), ["bad", "after", "last"]);
    assert.ok(failures >= 2);
    assert.deepEqual(await service.deadLetters("l"), []);
  },

  "a signal becomes a dead letter after a number of attempts, and its key continues": async ({
    another,
    service,
  }) => {
    let tries = 0;
    const collector = new Collector(async (signals) => {
      if (!signals.some(({ value }) => value === "poison")) return;
      if (signals.length === 1) tries++;
      throw new Error("never");
    });
    await service.listen("l", { key: "*" }, collector, { attempts: 3, backoffMs: 20 });
    await service.send([{ key: "a", value: 1 }]);
    await collector.reach(1);
    const [poison] = await service.send([
      { key: "b", value: "poison", sender: "ada" },
      { key: "b", value: 2 },
      { key: "a", value: 3 },
    ]);
    await collector.reach(3);
    assert.deepEqual(collector.byKey().get("default/b"), [2]);
    const letters = await deadLetters(await another(), "l", 1);
    assert.equal(letters.length, 1);
    const { attempts, error, listener, signal } = letters[0]!;
    assert.deepEqual([listener, attempts, error], ["l", 3, "never"]);
    assert.deepEqual(
      [signal.key, signal.value, signal.version, signal.sender],
      ["b", "poison", poison!.version, "ada"],
    );
    assert.equal(tries, 3);
    assert.deepEqual(await service.deadLetters("another"), []);
  },

  "retries survive the process": async ({ another, service }) => {
    const refuse = new Collector(async () => {
      throw new Error("not here");
    });
    const one = await service.listen("l", { key: "*" }, refuse, { backoffMs: 60_000, attempts: 2 });
    const before = one.position;
    await service.send([{ key: "a", value: 1 }]);
    // The position is past the signal: from here on only the stored retry refers to it.
    const passed = (async () => {
      while (one.position === before) await new Promise((resolve) => setTimeout(resolve, 10));
    })();
    await within(passed, () => "the listener did not move past the signal");
    await one.stop();
    await service.send([{ key: "b", value: 2 }]);
    const accept = new Collector();
    await (await another()).listen("l", { key: "*" }, accept, { backoffMs: 10 });
    await accept.reach(1);
    assert.deepEqual(accept.values, [2]);
  },

  "with transactions an effect is stored with the position, once": async ({ effects, service }) => {
    if (!service.hasTransactions || effects === undefined) return;
    let calls = 0;
    const collector = new Collector(async (signals, tx) => {
      calls++;
      for (const { value } of signals) await effects.note(tx!, String(value));
      if (calls % 3 === 1) throw new Error("after the effect");
    });
    const options = { backoffMs: 5, attempts: 50, batch: 7 };
    const listening = await service.listen("l", { key: "*" }, collector, options);
    const total = 60;
    for (let value = 0; value < total; value++) await service.send([{ key: `k${value % 5}`, value }]);
    await collector.reach(total);
    await listening.stop();
    const noted = (await effects.read()).map(Number);
    assert.deepEqual(
      noted.toSorted((a, b) => a - b),
      [...Array(total).keys()],
    );
  },
};

/** A dead letter is stored a moment before its key continues. */
async function deadLetters(service: SignalService, listener: string, count: number) {
  const found = (async () => {
    for (;;) {
      const letters = await service.deadLetters(listener);
      if (letters.length >= count) return letters;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  return within(found, () => "there was no dead letter");
}
