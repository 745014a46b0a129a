/** A signal service on another database drives scheduling. */
import { expect, it, onTestFinished } from "vitest";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { type Logger, silentLogger } from "../../service/logger.ts";
import { adhoc, Database } from "../../store/database/database.ts";
import { sendSignals } from "../../store/signal/signals.ts";
import { PostgresSignals } from "../postgres-signals.ts";
import type { SignalService } from "../signal-service.ts";
import { SignalBridge } from "./signal-bridge.ts";

/** A service, as used by another process. */
function service({ url }: Pick<TestDatabase, "url">): PostgresSignals {
  const database = Database.connect(url, { max: 4 });
  const wakeUps = new WakeUps(database);
  const signals = new PostgresSignals({ database, wakeUps, sender: "outside" });
  onTestFinished(async () => {
    await signals.close();
    await wakeUps.close();
    await database.close();
  });
  return signals;
}

async function bridge(
  database: Database,
  signals: SignalService,
  { logger = silentLogger, wakeUps }: { readonly wakeUps?: WakeUps; readonly logger?: Logger } = {},
): Promise<SignalBridge> {
  const wake = wakeUps ?? new WakeUps(database);
  const made = new SignalBridge({
    database,
    signals,
    service: "test",
    wakeUps: wake,
    logger,
    leaseMs: 600,
  });
  await made.start();
  onTestFinished(async () => {
    await made.stop();
    if (!wakeUps) wake.close();
  });
  return made;
}

const LOG = adhoc(`SELECT namespace, key, value, sender FROM signal
  WHERE namespace NOT IN ('task', 'run', 'action', 'schedule', 'tradewind.bridge') ORDER BY id`);
const isOpen = (db: Database) =>
  until(
    async () => (await db.rows(adhoc("SELECT 1 FROM signal_bridge WHERE holder IS NOT NULL"))).length > 0,
  );

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}
const values = async (db: Database) => (await db.rows<{ value: unknown }>(LOG)).map(({ value }) => value);

it("copies every signal into the log once and in order, across takeovers", async () => {
  const [inside, outside] = [await testDatabase(), await testDatabase()];
  const signals = service(outside);
  let holder = await bridge(inside.db, signals);
  await isOpen(inside.db);
  await bridge(inside.db, service(outside));
  for (let n = 0; n < 30; n += 10) {
    await signals.send(Array.from({ length: 10 }, (_, at) => ({ key: "n", value: n + at })));
    if (n === 10) {
      await holder.stop();
      holder = await bridge(inside.db, service(outside));
    }
  }
  const all = Array.from({ length: 30 }, (_, at) => at);
  await until(async () => (await values(inside.db)).length >= all.length);
  expect(await values(inside.db)).toEqual(all);
});

it("rejects signals in the engine's own namespaces", async () => {
  const [inside, outside] = [await testDatabase(), await testDatabase()];
  const signals = service(outside);
  await bridge(inside.db, signals);
  await isOpen(inside.db);
  await sendSignals(outside.db, [
    { namespace: "run", key: "etl/1", value: { state: "success" }, sender: "scheduler:1" },
  ]);
  await signals.send([{ key: "a", value: 1, sender: "task:etl/1/load" }]);
  await until(async () => (await values(inside.db)).length === 1);
  expect(await inside.db.rows(LOG)).toMatchObject([{ key: "a", sender: "service:task:etl/1/load" }]);
  expect(await inside.db.rows(adhoc("SELECT 1 FROM signal WHERE namespace = 'run'"))).toEqual([]);
});

it("copies signals of tasks to the service once, and does not import them again", async () => {
  const [inside, outside] = [await testDatabase(), await testDatabase()];
  const signals = service(outside);
  // The answers to the first two sends are lost: the versions that the service assigned are unknown.
  let lost = 2;
  const forgetful: SignalService = Object.create(signals, {
    send: {
      value: async (sent: Parameters<SignalService["send"]>[0]) => {
        const answer = await signals.send(sent);
        if (sent[0]?.client === undefined || lost-- <= 0) return answer;
        throw new Error("the answer is lost");
      },
    },
    subscribe: { value: signals.subscribe.bind(signals) },
    position: { value: signals.position.bind(signals) },
  });
  const wakeUps = new WakeUps(inside.db);
  await bridge(inside.db, forgetful, { wakeUps });
  await isOpen(inside.db);
  await sendSignals(inside.db, [
    { namespace: "default", key: "out", value: 1, sender: "task:etl/1/load" },
    { namespace: "default", key: "stays", value: 2, sender: "another" },
  ]);
  wakeUps.send("signals");
  await until(async () => (await signals.list({ key: "out" })).signals.length > 0);
  await signals.send([{ key: "in", value: 3 }]);
  await until(async () => (await values(inside.db)).includes(3));
  await until(async () => (await inside.db.rows(adhoc("SELECT 1 FROM signal_published"))).length === 0);
  expect(await values(inside.db)).toEqual([1, 2, 3]);
  const { signals: found } = await signals.list({ key: "*" });
  expect(found.map(({ key, sender }) => [key, sender])).toEqual([
    ["out", "tradewind:task:etl/1/load"],
    ["in", "outside"],
  ]);
  await wakeUps.close();
});

it("copies nothing if the service stores into the same log", async () => {
  const inside = await testDatabase();
  const signals = service(inside);
  const told = Promise.withResolvers<string>();
  const logger = { ...silentLogger, info: told.resolve, warn: told.reject };
  await bridge(inside.db, signals, { logger });
  expect(await told.promise).toContain("nothing to copy");
  await signals.send([{ key: "a", value: 1 }]);
  expect(await values(inside.db)).toEqual([1]);
  expect(await inside.db.rows(adhoc("SELECT * FROM signal_bridge"))).toEqual([]);
});

it("drives rules and waits of runs with signals of the service only, and sends signals of tasks to it", async () => {
  const rig = await SchedulerRig.open();
  const outside = await testDatabase();
  const signals = service(outside);
  await rig.publish({
    "bridged.ts": `import { dag, signal, start } from "tradewind";
      export default dag("bridged", { stop: signal("over") }, (d) => {
        d.task("work", { on: [start(signal("go"))] }, async (_, ctx) => {
          await ctx.send(signal("worked"), ctx.startSignals[0]?.value);
          await ctx.send(signal("done"), 1, { onSuccess: true });
        });
      });`,
  });
  await rig.scheduler();
  await bridge(rig.db, signals, { wakeUps: rig.wakeUps });
  await isOpen(rig.db);
  const id = await rig.trigger("bridged");
  await rig.until(async () => (await rig.states(id)).work === "pending", "the run");
  await signals.send([{ key: "go", value: 7 }]);
  await rig.until(async () => (await rig.states(id)).work === "success", "work");
  await until(async () => (await signals.list({ key: "done" })).signals.length === 1);
  expect((await signals.list({ key: "worked" })).signals).toMatchObject([{ value: 7 }]);
  await signals.send([{ key: "over" }]);
  expect(await rig.ended(id)).toBe("success");
});
