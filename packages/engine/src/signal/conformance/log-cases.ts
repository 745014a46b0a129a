/** Sending, listing, and the start position of a listener. */
import assert from "node:assert/strict";
import { Collector, type ConformanceSubject } from "./subject.ts";

export const LOG_CASES: Readonly<Record<string, (subject: ConformanceSubject) => Promise<void>>> = {
  "versions of a key increase, and results are in the order of the sent signals": async ({ service }) => {
    const sent = await service.send([{ key: "a", value: 1 }, { key: "b" }, { key: "a", value: 2 }]);
    assert.deepEqual(
      sent.map(({ isDuplicate, key, namespace }) => [namespace, key, isDuplicate]),
      [
        ["default", "a", false],
        ["default", "b", false],
        ["default", "a", false],
      ],
    );
    const [later] = await service.send([{ key: "a", value: 3 }]);
    assert.ok(sent[0]!.version < sent[2]!.version && sent[2]!.version < later!.version);
    assert.deepEqual(await service.send([]), []);
    const [first] = (await service.list({ key: "a" })).signals;
    assert.deepEqual([first?.value, first?.version], [1, sent[0]!.version]);
    assert.ok(Math.abs(first!.time.getTime() - Date.now()) < 60_000);
  },

  "lists by namespace, key, version, time and sender, page by page, both ways": async ({ service }) => {
    await service.send([
      { key: "model.a", value: 1, sender: "ada" },
      { key: "model.b", value: 2, sender: "bob" },
      { key: "other", value: 3, sender: "ada" },
      { namespace: "team", key: "model.a", value: 4, sender: "ada" },
      { key: "model.a", value: { deep: ["x", null] }, sender: "ada" },
    ]);
    const values = async (query: Parameters<typeof service.list>[0]) =>
      (await service.list(query)).signals.map(({ value }) => value);
    assert.deepEqual(await values({}), [1, 2, 3, { deep: ["x", null] }]);
    assert.deepEqual(await values({ key: "model.a" }), [1, { deep: ["x", null] }]);
    assert.deepEqual(await values({ key: "*.b" }), [2]);
    assert.deepEqual(await values({ key: ["other", "*.b"] }), [2, 3]);
    assert.deepEqual(await values({ namespace: "*", key: "m*l.a" }), [1, 4, { deep: ["x", null] }]);
    assert.deepEqual(await values({ namespace: "te*" }), [4]);
    assert.deepEqual(await values({ sender: "bob" }), [2]);
    assert.deepEqual(await values({ time: { lt: new Date(0) } }), []);
    const all = (await service.list({})).signals;
    assert.deepEqual(await values({ version: { gt: all[0]!.version, lte: all[2]!.version } }), [2, 3]);
    const first = await service.list({ limit: 3, descending: true });
    assert.deepEqual(
      first.signals.map(({ value }) => value),
      [{ deep: ["x", null] }, 3, 2],
    );
    const rest = await service.list({ limit: 3, descending: true, cursor: first.next });
    assert.deepEqual([rest.signals.map(({ value }) => value), rest.next], [[1], null]);
  },

  "stores a signal once per client and sequence": async ({ another, service }) => {
    const numbered = (sequence: number, value: number) => ({ key: "n", value, client: "c1", sequence });
    const [first] = await service.send([numbered(1, 10)]);
    const again = await service.send([numbered(1, 99), numbered(2, 20)]);
    assert.deepEqual(
      again.map(({ isDuplicate }) => isDuplicate),
      [true, false],
    );
    assert.equal(again[0]!.version, first!.version);
    const other = await another();
    const race = await Promise.all(
      [service, other, service, other].map((each) => each.send([numbered(3, 30)])),
    );
    assert.equal(new Set(race.map(([sent]) => sent!.version)).size, 1);
    assert.deepEqual(
      (await service.list({ key: "n" })).signals.map(({ value }) => value),
      [10, 20, 30],
    );
    await assert.rejects(service.send([{ ...numbered(1, 10), key: "m" }]), {
      code: "SIGNAL_SEQUENCE_REUSED",
    });
  },

  "rejects only invalid signals": async ({ service }) => {
    const refused = [
      { key: "" },
      { key: "a*" },
      { key: "a\0b" },
      { key: "k", namespace: "*" },
      { key: "k".repeat(251) },
      { key: "k", client: "c" },
      { key: "k", client: "c", sequence: 1.5 },
      { key: "k", value: "x".repeat(1_100_000) },
      { key: "k", value: "a\0b" },
      { key: "k", value: [{ "\\\udfff": 1 }] },
    ];
    const outcomes = await Promise.allSettled([
      ...refused.map((signal) => service.send([signal])),
      service.send([{ key: "good", value: ["\u{1f600}", "\\ud800", "\\\\u0000"] }]),
    ]);
    for (const [at, outcome] of outcomes.slice(0, -1).entries()) {
      assert.equal(outcome.status, "rejected", `number ${at}`);
      assert.equal((outcome.reason as { code: string }).code, "SIGNAL_INVALID", `number ${at}`);
    }
    assert.equal(outcomes.at(-1)!.status, "fulfilled");
    assert.equal((await service.list({ namespace: "*" })).signals.length, 1);
  },

  "delivers only matching signals to a listener": async ({ service }) => {
    const watchers = {
      exact: new Collector(),
      wild: new Collector(),
      far: new Collector(),
      by: new Collector(),
    };
    const from = { from: "start" } as const;
    await service.listen("exact", { key: ["a", "b.1"] }, watchers.exact, from);
    await service.listen("wild", { key: "b.*" }, watchers.wild, from);
    await service.listen("far", { namespace: "*" }, watchers.far, from);
    await service.listen(null, { sender: "bob" }, watchers.by, from);
    await service.send([
      { key: "a" },
      { key: "b.1" },
      { key: "b.2", sender: "bob" },
      { key: "ab.1" },
      { namespace: "team", key: "a" },
    ]);
    await watchers.far.reach(5);
    await Promise.all([watchers.exact.reach(2), watchers.wild.reach(2), watchers.by.reach(1)]);
    assert.deepEqual(watchers.exact.keys, ["a", "b.1"]);
    assert.deepEqual(watchers.wild.keys, ["b.1", "b.2"]);
    assert.deepEqual(watchers.by.keys, ["b.2"]);
    const { namespace, position, sender, version } = watchers.far.signals[4]!;
    assert.deepEqual([namespace, typeof version], ["team", "number"]);
    assert.ok(position.length > 0 && sender.length > 0);
  },

  "begins at the start, now, after a version, since a time, or at a position": async ({ service }) => {
    const [one, two] = await service.send([
      { key: "k", value: 1 },
      { key: "k", value: 2 },
      { key: "k", value: 3 },
    ]);
    const starts = {
      start: "start",
      now: "now",
      version: { afterVersion: two!.version },
      time: { since: new Date(Date.now() - 3_600_000) },
      future: { since: new Date(Date.now() + 3_600_000) },
      position: { position: one!.position },
    } as const;
    const found = new Map<string, Collector>();
    for (const name of [null, "named"]) {
      for (const [which, from] of Object.entries(starts)) {
        const collector = new Collector();
        found.set(`${name} ${which}`, collector);
        await service.listen(name && `${name}-${which}`, { key: "k" }, collector, { from });
      }
    }
    await service.send([{ key: "k", value: 4 }]);
    const expected = {
      start: [1, 2, 3, 4],
      now: [4],
      version: [3, 4],
      time: [1, 2, 3, 4],
      future: [],
      position: [2, 3, 4],
    };
    for (const name of [null, "named"]) {
      for (const [which, values] of Object.entries(expected)) {
        const collector = found.get(`${name} ${which}`)!;
        await collector.reach(values.length);
        assert.deepEqual(collector.values, values, `${name} ${which}`);
      }
    }
  },

  "returns the position of a time, from which a subscription continues": async ({ service }) => {
    await service.send([{ key: "k", value: 1 }]);
    const place = await service.position("now");
    await service.send([{ key: "k", value: 2 }, { key: "k", value: 3 }, { key: "other" }]);
    const subscription = service.subscribe({ key: "k" }, place);
    const read = async (limit: number) => {
      const batch = await subscription.next({ limit, waitMs: 20_000 });
      return [batch.signals.map(({ value }) => value), batch.position] as const;
    };
    const [first, position] = await read(1);
    assert.deepEqual(first, [2]);
    assert.deepEqual((await read(10))[0], [3]);
    const empty = await subscription.next({ limit: 10, waitMs: 50 });
    assert.deepEqual(empty.signals, []);
    const abort = new AbortController();
    const waiting = subscription.next({ limit: 10, waitMs: 60_000, abort: abort.signal });
    abort.abort();
    assert.deepEqual((await waiting).signals, []);
    subscription.close();
    const resumed = service.subscribe({ key: "k" }, { position });
    assert.deepEqual(
      (await resumed.next({ limit: 10, waitMs: 20_000 })).signals.map(({ value }) => value),
      [3],
    );
    resumed.close();
  },
};
