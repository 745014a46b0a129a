/** Features of the PostgreSQL service only: shared reads, retried dead letters, retention. */
import { beforeEach, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { WakeUps } from "../job/wake-up.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { cleanHistory } from "../store/run/history.ts";
import { deleteListener, listListeners, retryDeadLetter } from "../store/signal/signals-watch.ts";
import { Collector } from "./conformance/conformance.ts";
import { PostgresSignals } from "./postgres-signals.ts";
import type { SignalService } from "./signal-service.ts";

let test: TestDatabase;
let database: Database;
let service: PostgresSignals;

beforeEach(async () => {
  test = await testDatabase();
  database = Database.connect(test.url, { max: 20 });
  const wakeUps = new WakeUps(database);
  service = new PostgresSignals({ database, wakeUps });
  return async () => {
    await service.close();
    await wakeUps.close();
    await database.close();
    await test.close();
  };
});

const page = { limit: 100, offset: 0 };

describe("100 listeners", () => {
  it("read the log together", async () => {
    let reads = 0;
    const pipeline = database.pipeline.bind(database);
    database.pipeline = (calls) => {
      if (calls.some(({ statement }) => /^signal-read/.test(statement.name))) reads++;
      return pipeline(calls);
    };
    const collectors = Array.from({ length: 100 }, () => new Collector());
    await Promise.all(collectors.map((each, at) => service.listen(`l${at}`, { key: "*" }, each)));
    for (let n = 0; n < 50; n++) await service.send([{ key: `k${n % 5}`, value: n }]);
    await Promise.all(collectors.map((each) => each.reach(50)));
    expect(reads).toBeLessThan(500);
    for (const collector of collectors) expect(collector.signals).toHaveLength(50);
  });

  it("do not wait for a slow listener, which reads on its own and misses nothing", async () => {
    const total = 30_000;
    const quick = new Collector();
    let isSlow = true;
    const resume = Promise.withResolvers<void>();
    const slow = new Collector(async () => {
      if (isSlow) await resume.promise;
    });
    await service.listen("quick", { key: "*" }, quick);
    await service.listen(null, { key: "*" }, slow);
    for (let n = 0; n < total; n += 1_000) {
      await service.send(Array.from({ length: 1_000 }, (_, at) => ({ key: `k${at % 7}`, value: n + at })));
    }
    await quick.reach(total);
    isSlow = false;
    resume.resolve();
    await slow.reach(total);
    expect(slow.signals.map(({ version }) => version)).toEqual(quick.signals.map(({ version }) => version));
  });
});

describe("a dead letter", () => {
  async function poisoned() {
    let isCured = false;
    const collector = new Collector(async (signals) => {
      if (!isCured && signals.some(({ value }) => value === "poison")) throw new Error("never\0");
    });
    await service.listen("l", { key: "*" }, collector, { attempts: 2, backoffMs: 10, leaseMs: 600 });
    await service.send([
      { key: "a", value: "poison" },
      { key: "a", value: 2 },
    ]);
    await collector.reach(1);
    const [letter] = await service.deadLetters("l");
    return { collector, letter: letter!, cure: () => (isCured = true) };
  }

  it("is retried on request, and removed after a success", async () => {
    const { collector, cure, letter } = await poisoned();
    expect(letter).toMatchObject({ error: "never", attempts: 2, signal: { key: "a", value: "poison" } });
    cure();
    expect(await retryDeadLetter(test.db, letter.id)).toBe(true);
    await collector.reach(2);
    await gone(service);
    expect(collector.values).toEqual([2, "poison"]);
  });

  it("stays after another failure, with one more attempt", async () => {
    const { letter } = await poisoned();
    await retryDeadLetter(test.db, letter.id);
    for (;;) {
      const [now] = await service.deadLetters("l");
      if (now?.attempts === 3) {
        expect(now.isRetried).toBe(false);
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });

  async function gone(of: SignalService): Promise<void> {
    while ((await of.deadLetters("l")).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

describe("retention", () => {
  const HOUR = 3_600_000;
  const clean = (more: object = {}) =>
    cleanHistory(test.db, { olderThanMs: HOUR, dryRun: false, batch: 2, ...more });
  const age = () => test.db.rows(adhoc("UPDATE signal SET created_at = created_at - interval '2 hours'"));
  const left = async () => (await service.list({ limit: 100 })).signals.map(({ value }) => value);

  it("deletes by age, up to the position of the slowest listener", async () => {
    const collector = new Collector();
    const listening = await service.listen("l", { key: "*" }, collector);
    for (let n = 0; n < 3; n++) await service.send([{ key: "k", value: n }]);
    await collector.reach(3);
    await listening.stop();
    for (let n = 3; n < 6; n++) await service.send([{ key: "k", value: n }]);
    expect(await clean()).toMatchObject({ signals: 0 });
    await age();
    await service.send([{ key: "k", value: "young" }]);
    expect(await clean({ dryRun: true })).toMatchObject({ signals: 3 });
    expect(await clean()).toMatchObject({ signals: 3 });
    expect(await left()).toEqual([3, 4, 5, "young"]);
  });

  it("keeps the signals that a listener must retry", async () => {
    const collector = new Collector(async (signals) => {
      if (signals.some(({ key }) => key === "bad")) throw new Error("not yet");
    });
    const listening = await service.listen("l", { key: "*" }, collector, { backoffMs: 60_000 });
    await service.send([{ key: "bad", value: "bad" }]);
    await service.send([{ key: "good", value: 1 }]);
    await collector.reach(1);
    await listening.stop();
    await age();
    await clean();
    expect(await left()).toEqual(["bad"]);
  });

  it("does not wait for a listener that has been inactive for long, and logs that", async () => {
    const listening = await service.listen("gone", { key: "*" }, new Collector());
    await listening.stop();
    await service.send([{ key: "k", value: 1 }]);
    await age();
    await test.db.rows(adhoc("UPDATE signal_listener SET seen_at = now() - interval '8 days'"));
    expect(await clean({ staleListenerMs: 30 * 24 * HOUR })).toMatchObject({ signals: 0 });
    const stale: string[] = [];
    const told = { onStaleListener: ({ name }: { name: string }) => stale.push(name) };
    expect(await clean(told)).toMatchObject({ signals: 1 });
    expect(stale).toEqual(["gone"]);
  });
});

it("shows the listeners, and deletes only inactive ones", async () => {
  const collector = new Collector(async (signals) => {
    if (signals.some(({ key }) => key === "bad")) throw new Error("not yet");
  });
  const listening = await service.listen("l", { namespace: "*", key: ["a*", "bad"] }, collector, {
    backoffMs: 60_000,
  });
  await service.send([{ key: "a1" }, { key: "bad" }, { key: "a2" }]);
  await collector.reach(2);
  await expect
    .poll(async () => (await listListeners(test.db, page)).rows[0]?.retrying, { timeout: 20_000 })
    .toMatchObject([{ key: "bad", attempts: 1, error: "not yet" }]);
  const { rows, total } = await listListeners(test.db, page);
  expect(total).toBe(1);
  expect(rows[0]).toMatchObject({
    name: "l",
    filter: { namespace: "*", keys: ["a*", "bad"], sender: null },
    is_active: true,
    host: expect.stringContaining(String(process.pid)),
    behind: 0,
    dead_letters: 0,
  });
  expect(await deleteListener(test.db, "l")).toBe(false);
  await listening.stop();
  expect((await listListeners(test.db, page)).rows[0]).toMatchObject({ is_active: false, processed: 2 });
  expect(await deleteListener(test.db, "l")).toBe(true);
});
