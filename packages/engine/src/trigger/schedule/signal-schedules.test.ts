import type { Json, ScheduleManifest, SignalCondition } from "@tradewind/sdk/manifest";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { TriggererProcess } from "../../../test/fault/triggerer-process.ts";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { pgProxy } from "../../../test/support/pg-proxy.ts";
import { LONG_LEASE, TriggererRig } from "../../../test/support/triggerer-rig.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { type Logger, silentLogger } from "../../service/logger.ts";
import { deleteDag, setPaused } from "../../store/dag/dag-settings.ts";
import { adhoc, Database } from "../../store/database/database.ts";
import { readSchedules } from "../../store/signal/signal-schedules.ts";
import { type SignalDraft, sendSignals } from "../../store/signal/signals.ts";
import { claimListener } from "../../store/signal/signals-listener.ts";
import { startNow } from "../../store/signal/signals-position.ts";
import { deleteListener } from "../../store/signal/signals-watch.ts";
import { SignalSchedules } from "./signal-schedules.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  return () => rig.close();
});

type Leaf = Extract<SignalCondition, { kind: "signal" }>;
const leaf = (key: string, more: Partial<Leaf> = {}): Leaf => ({
  ...{ kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false },
  ...more,
});
const all = (...of: SignalCondition[]): SignalCondition => ({ kind: "all", of });
const any = (...of: SignalCondition[]): SignalCondition => ({ kind: "any", of });

async function publish(when: SignalCondition, more: { route?: string; dagId?: string; start?: string } = {}) {
  const { dagId = "feed", route = null, start = null } = more;
  const schedule: ScheduleManifest = { kind: "signal", when, route };
  await seedDag(rig.db, dagId, { schedule, start });
}

type Given = readonly [key: string, value: Json];
const draft = ([key, value]: Given): SignalDraft => ({ namespace: "default", key, value, sender: "test" });

/** Stores signals in this order, without a wake-up. */
async function store(...signals: readonly Given[]): Promise<number[]> {
  return (await sendSignals(rig.db, signals.map(draft))).map(({ id }) => id);
}

async function send(...signals: readonly Given[]): Promise<number[]> {
  const versions = await store(...signals);
  await rig.notify("signals");
  return versions;
}

interface RunRow {
  readonly run_id: string;
  readonly run_type: string;
  readonly conf: { readonly signal: { readonly value: Json; readonly version: number } };
}

const runs = (dagId = "feed") =>
  rig.db.rows<RunRow>(adhoc("SELECT run_id, run_type, conf FROM dag_run WHERE dag_id = $1 ORDER BY id"), [
    dagId,
  ]);
const values = async (dagId = "feed") => (await runs(dagId)).map(({ conf }) => conf.signal.value);
const haveRuns = (count: number, dagId = "feed") =>
  rig.until(async () => (await runs(dagId)).length >= count, `${count} runs`, 40_000);
const pause = (paused: boolean) => rig.db.transaction((tx) => setPaused(tx, ["feed"], paused));
const stored = async () => (await readSchedules(rig.db, ["dag:feed"]))[0]!;

/** A triggerer reduced to this part; counts the announcements of runs. */
function looker(options: { database?: Database; passMs?: number; logger?: Logger } = {}) {
  let told = 0;
  const schedules = new SignalSchedules({
    ...{ database: rig.db, logger: silentLogger, ...options },
    onRuns: () => {
      told++;
    },
  });
  const look = async () => {
    schedules.changed();
    // Other transactions on the same server may hide the newest signals for a moment.
    const isRead = async () => !(await schedules.read(performance.now() + 10_000)).isHeld;
    await rig.until(isRead, "everything to be read");
    return told;
  };
  return { look };
}

describe("signal schedules create one run per firing", () => {
  it("for the engine's own signals, woken by state changes", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    await publish(leaf("other/*", { namespace: "run", where: { state: "failed" } }));
    await rig.notify("dags");
    const tell = async (key: string, state: string) => {
      await rig.db.rows(
        adhoc(`INSERT INTO signal (namespace, key, value, sender)
               VALUES ('run', $1, json_build_object('state', $2::text), 'scheduler:1')`),
        [key, state],
      );
      await rig.notify("states");
    };
    await tell("other/r1", "running");
    await tell("other/r1", "failed");
    await haveRuns(1);
    await tell("another/r1", "failed");
    await tell("other/r2", "failed");
    await haveRuns(2);
    const heard = (await runs()).map(({ conf }) => conf.signal as unknown as { key: string });
    expect(heard.map(({ key }) => key)).toEqual(["other/r1", "other/r2"]);
  });

  it("for signals sent since the DAG was published, also while no triggerer was running", async () => {
    await store(["paid", "too early"]);
    await publish(leaf("paid"));
    await store(["paid", "first"], ["else", 0]);
    await rig.triggerer({ lease: LONG_LEASE });
    await haveRuns(1);
    const [version] = await send(["paid", { order: 7 }]);
    await haveRuns(2);
    expect(await values()).toEqual(["first", { order: 7 }]);
    expect((await runs())[1]).toEqual({
      run_id: `signal__${version}`,
      run_type: "signal_triggered",
      conf: { signal: { key: "paid", value: { order: 7 }, version } },
    });
  });

  it("in the order of the log, for each of 500 signals sent at once", async () => {
    await publish(leaf("paid", { where: { even: true } }));
    await publish(any(leaf("pa*"), leaf("other")), { dagId: "wild" });
    await rig.triggerer({ lease: LONG_LEASE });
    const burst = Array.from({ length: 1_000 }, (_, n): Given => ["paid", { n, even: n % 2 === 0 }]);
    await send(...burst);
    await haveRuns(500);
    await haveRuns(1_000, "wild");
    const numbers = (await values()).map((value) => (value as { n: number }).n);
    expect(numbers).toEqual(Array.from({ length: 500 }, (_, n) => 2 * n));
    expect(await values("wild")).toEqual(burst.map(([, value]) => value));
  });

  it("of all(): when the last part arrived, with the signals by key; a repeated part counts once", async () => {
    await publish(all(leaf("a"), leaf("b", { equals: { value: 1 } })));
    const { job } = await rig.triggerer({ lease: LONG_LEASE });
    const [, a2, , b] = await send(["a", 1], ["a", 2], ["b", 0], ["b", 1]);
    await haveRuns(1);
    expect((await runs())[0]).toMatchObject({
      run_id: `signal__${b}`,
      conf: {
        signal: { key: "b", value: 1, version: b },
        signals: { a: { key: "a", value: 2, version: a2 }, b: { key: "b", value: 1, version: b } },
      },
    });
    // A partial state is kept when another triggerer continues.
    await send(["b", 1]);
    await rig.until(async () => JSON.stringify((await stored()).state).includes('"met":true'), "one half");
    await rig.db.rows(adhoc("UPDATE job SET state = 'dead', lease_until = now() WHERE id = $1"), [job.jobId]);
    await rig.triggerer();
    await send(["a", 3]);
    await haveRuns(2);
    expect((await runs())[1]).toMatchObject({ conf: { signal: { key: "a", value: 3 } } });
  });

  it("with a route, no second run after the first has ended, and a log line", async () => {
    await publish(leaf("paid"), { route: "order" });
    const lines: unknown[] = [];
    const info = (message: string, facts?: unknown) => void lines.push([message, facts]);
    const { look } = looker({ logger: { ...silentLogger, info } });
    await store(["paid", { order: "A" }]);
    await look();
    await rig.db.rows(adhoc("UPDATE dag_run SET state = 'success' WHERE run_id = 'signal__A'"));
    expect(lines).toEqual([]);
    await store(["paid", { order: "A" }], ["paid", { order: "B" }], ["paid", { order: "B" }]);
    await look();
    expect((await runs()).map(({ run_id }) => run_id)).toEqual(["signal__A", "signal__B"]);
    expect(lines).toEqual([
      [
        expect.stringContaining("created no run"),
        { dagId: "feed", runIds: ["signal__A", "signal__B"], signals: 2 },
      ],
    ]);
  });

  it("with a route, one run per value; without a value, a separate run", async () => {
    await publish(leaf("paid"), { route: "order.id" });
    await rig.triggerer({ lease: LONG_LEASE });
    const order = (id: Json): Given => ["paid", { order: { id } }];
    const versions = await send(order("A-1"), order("A-1"), order("a/1"), order("a 1"), order({}), [
      "paid",
      1,
    ]);
    await haveRuns(5);
    await send(order("A-1"), order(7));
    await haveRuns(6);
    expect((await runs()).map(({ run_id }) => run_id)).toEqual([
      "signal__A-1",
      expect.stringMatching(/^signal__a_1~[0-9a-f]{16}$/),
      expect.stringMatching(/^signal__a_1~[0-9a-f]{16}$/),
      `signal__~${versions[4]}`,
      `signal__~${versions[5]}`,
      "signal__7",
    ]);
    expect((await values())[0]).toEqual({ order: { id: "A-1" } });
  });

  it("and none for signals sent before the DAG's start date", async () => {
    await publish(leaf("paid"), { start: new Date(Date.now() + 3_600_000).toISOString() });
    await publish(leaf("paid"), { dagId: "begun", start: "2020-01-01T00:00:00.000Z" });
    await store(["paid", 1]);
    await looker().look();
    expect(await values()).toEqual([]);
    expect(await values("begun")).toEqual([1]);
  });
});

describe("a DAG", () => {
  it("and keep the signals of a paused DAG", async () => {
    await publish(leaf("paid"));
    await rig.triggerer({ lease: LONG_LEASE });
    await send(["paid", 0]);
    await haveRuns(1);
    await pause(true);
    await rig.notify("dags");
    await send(["paid", 1]);
    await publish(leaf("paid"), { dagId: "awake" });
    await rig.notify("dags");
    await send(["paid", 2]);
    await haveRuns(1, "awake");
    expect(await values()).toEqual([0]);
    await pause(false);
    await rig.notify("dags");
    await haveRuns(3);
    expect(await values()).toEqual([0, 1, 2]);
  });

  it("keep the position and drop the state of a changed condition; keep the state of an unchanged one", async () => {
    const both = all(leaf("a"), leaf("b"));
    await publish(both);
    await store(["a", 1]);
    await looker().look();
    const before = await stored();
    await publish(both);
    expect(await stored()).toEqual(before);
    await publish(all(leaf("a"), leaf("b"), leaf("c")));
    const after = await stored();
    expect(after).toMatchObject({ position: before.position, state: null });
    expect(after.revision).not.toBe(before.revision);
    await store(["b", 1], ["c", 1]);
    await looker().look();
    expect(await runs()).toEqual([]);
    await store(["a", 2]);
    await looker().look();
    expect(await values()).toEqual([2]);
  });

  it("delete the position with the schedule and with the DAG, and no listener can take its name", async () => {
    await publish(leaf("paid"));
    const listeners = () => rig.db.rows(adhoc("SELECT name, holder FROM signal_listener"));
    expect(await listeners()).toEqual([{ name: "dag:feed", holder: "schedule" }]);
    const claim = { name: "dag:feed", holder: "me", host: "here", filter: {}, ttlMs: 1_000 };
    expect(await claimListener(rig.db, claim, () => startNow(rig.db))).toBeNull();
    expect(await deleteListener(rig.db, "dag:feed")).toBe(false);
    await seedDag(rig.db, "feed");
    expect(await listeners()).toEqual([]);
    await store(["paid", "meanwhile"]);
    await publish(leaf("paid"));
    await looker().look();
    expect(await runs()).toEqual([]);
    await rig.db.transaction((tx) => deleteDag(tx, "feed"));
    expect(await listeners()).toEqual([]);
  });

  it("although another DAG's condition cannot be read", async () => {
    await publish({ kind: "all", of: [] }, { dagId: "broken" });
    await publish(leaf("paid"));
    await store(["paid", 1]);
    await looker().look();
    expect(await values()).toEqual([1]);
  });
});

describe("exactly once", () => {
  it("if two triggerers poll at the same time, repeatedly", async () => {
    const both = all(leaf("a"), leaf("b"));
    await publish(leaf("paid"));
    await publish(both, { dagId: "both" });
    await Promise.all([rig.triggerer(), rig.triggerer()]);
    const rounds = 40;
    for (let n = 0; n < rounds; n++)
      await send(...Array.from({ length: 10 }, (_, i): Given => ["paid", n * 10 + i]), ["a", n], ["b", n]);
    await haveRuns(rounds * 10);
    await haveRuns(rounds, "both");
    expect(await values()).toEqual(Array.from({ length: rounds * 10 }, (_, n) => n));
    expect(await values("both")).toEqual(Array.from({ length: rounds }, (_, n) => n));
  });

  it("if answers to commits get lost and the database restarts", async () => {
    const proxy = await pgProxy(rig.url);
    await publish(leaf("paid"));
    await rig.triggerer({ url: proxy.url });
    proxy.set({ kind: "drop-commit-answer", probability: 0.4 });
    const expected: Json[] = [];
    for (let n = 0; n < 30; n++) {
      await send(["paid", n]);
      expected.push(n);
      await haveRuns(n - 3);
    }
    proxy.set({ kind: "cut" });
    await send(["paid", "while it was away"]);
    proxy.set({ kind: "pass" });
    await haveRuns(31);
    expect(await values()).toEqual([...expected, "while it was away"]);
    expect(proxy.faults.dropped).toBeGreaterThan(0);
    await proxy.close();
  }, 60_000);

  it("if a triggerer dies before its commit: its lock blocks the other, and nothing is lost", async () => {
    await publish(leaf("paid"));
    await store(["paid", 1]);
    const dying = Database.connect(rig.url);
    const rolledBack = dying.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT 1 FROM signal_listener WHERE name = 'dag:feed' FOR UPDATE"));
      await tx.rows(
        adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, version_id, triggered_by)
               SELECT dag_id, 'signal__1', 'signal_triggered', version_id, 'signal' FROM dag WHERE dag_id = 'feed'`),
      );
      expect(await looker().look()).toBe(0);
      throw new Error("died");
    });
    await expect(rolledBack).rejects.toThrow("died");
    await dying.close();
    expect(await looker().look()).toBe(1);
    expect(await values()).toEqual([1]);
  });

  it("if triggerers are killed while they create runs", async () => {
    await publish(leaf("paid"));
    await publish(all(leaf("paid"), leaf("every")), { dagId: "both" });
    let sent = 0;
    for (let killed = 0; killed < 4; killed++) {
      const home = `${rig.root}/killed-${killed}`;
      const place = { home, databaseUrl: rig.url, ledger: `${home}.ledger`, notifies: true };
      const triggerer = new TriggererProcess(place);
      onTestFinished(() => triggerer.discard());
      await triggerer.ready;
      const target = sent + 150;
      for (; sent < target + 150; sent += 50) {
        const signals = Array.from({ length: 50 }, (_, n): Given => ["paid", sent + n]);
        await send(...signals, ["every", sent]);
      }
      // Kills it as soon as some runs are stored and the rest is in progress.
      await haveRuns(target);
      await triggerer.kill();
    }
    await rig.triggerer();
    await haveRuns(sent);
    await haveRuns(sent / 50, "both");
    expect(await values()).toEqual(Array.from({ length: sent }, (_, n) => n));
    expect(await values("both")).toEqual(Array.from({ length: sent / 50 }, (_, n) => n * 50));
  }, 90_000);

  it("if a commit is late: later signals of the log wait for it", async () => {
    await publish(any(leaf("a"), leaf("b")));
    const schedules = new SignalSchedules({ database: rig.db, logger: silentLogger, onRuns: () => {} });
    const look = () => schedules.read(performance.now() + 10_000);
    await look();
    await rig.db.transaction(async (tx) => {
      await sendSignals(tx, [draft(["a", "begun first"])]);
      await store(["b", "committed first"]);
      expect(await look()).toMatchObject({ isHeld: true });
      expect(await runs()).toEqual([]);
    });
    await rig.until(async () => !(await look()).isHeld, "everything to be read");
    expect(await values()).toEqual(["begun first", "committed first"]);
  });

  it("with NOTIFY off", async () => {
    const database = Database.connect(rig.url);
    await publish(leaf("paid"));
    await rig.triggerer({ lease: LONG_LEASE, wakeUps: new WakeUps(database, { enabled: false }) });
    for (let n = 0; n < 3; n++) {
      await store(["paid", n]);
      await haveRuns(n + 1);
    }
    expect(await values()).toEqual([0, 1, 2]);
    await database.close();
  });
});

it("moves the positions of DAGs without matching signals, so that retention need not wait for them", async () => {
  await publish(leaf("paid"));
  const before = await stored();
  const { look } = looker({ passMs: 0 });
  await look();
  await store(["else", 1]);
  await look();
  const passed = await stored();
  expect(BigInt(passed.position.tx)).toBeGreaterThan(BigInt(before.position.tx));
  await store(["paid", 1]);
  await look();
  expect(await values()).toEqual([1]);
});
