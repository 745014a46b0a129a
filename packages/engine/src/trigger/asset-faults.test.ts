/** Assets while processes die and commit answers get lost: one event per success, and each event in one run of its consumer. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { GatherManifest, ScheduleManifest, SignalCondition } from "@tradewind/sdk/manifest";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Stage } from "../../test/fault/stage.ts";
import { TriggererProcess } from "../../test/fault/triggerer-process.ts";
import { seedDag } from "../../test/support/catalogue-seed.ts";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { TriggererRig } from "../../test/support/triggerer-rig.ts";
import { recordEvent } from "../store/asset/asset-events.ts";
import { adhoc } from "../store/database/database.ts";

describe("stores one event of each asset per success", () => {
  const dags = (root: string) => `
    import { asset, dag } from "tradewind";
    import { appendFileSync, existsSync } from "node:fs";
    import { setTimeout as sleep } from "node:timers/promises";
    const root = ${JSON.stringify(root)};
    const [told, silent] = [asset<number>("told"), asset("silent")];
    export default dag("produce", {}, (d) => {
      d.task("make", { produces: [told, silent] }, async (_, ctx) => {
        await ctx.produce(told, ctx.tryNumber);
        appendFileSync(root + "/notes", ctx.run.id + "\\n");
        while (!existsSync(root + "/" + ctx.run.id)) await sleep(10);
      });
    });
  `;

  const producing = async () => {
    const stage = await Stage.open();
    const { installation } = stage;
    const { root } = installation;
    await installation.publishFiles({ "assets.ts": dags(root) });
    const notes = () =>
      existsSync(`${root}/notes`) ? readFileSync(`${root}/notes`, "utf8").split("\n") : [];
    const events = () =>
      installation.sql<{ uri: string; source_run_id: string; payload: unknown }>(
        `SELECT a.uri, e.source_run_id, e.payload FROM asset_event e JOIN asset a ON a.id = e.asset_id
         JOIN signal s ON s.id = e.id AND s.key = a.uri ORDER BY a.uri, e.source_run_id`,
      );
    return {
      stage,
      events,
      allow: (name: string) => writeFileSync(`${root}/${name}`, ""),
      isAtWork: (run: string, times = 1) =>
        stage.until(`${run} is at work`, () => notes().filter((line) => line === run).length >= times),
      start: (name: string) => stage.start(stage.place(name, { databaseUrl: stage.proxy.url })),
    };
  };
  const once = [
    { uri: "silent", source_run_id: "run", payload: null },
    { uri: "told", source_run_id: "run", payload: 1 },
  ];

  it("if the scheduler dies before the success is stored: the event appears only after the task has run again", async () => {
    const { allow, events, isAtWork, stage, start } = await producing();
    const first = await start("first");
    await stage.installation.trigger("produce", "run");
    await isAtWork("run");
    await first.kill();
    expect(await events()).toEqual([]);
    await start("second");
    await isAtWork("run", 2);
    allow("run");
    expect(await stage.runEnds()).toBe("success");
    expect((await events()).map(({ uri }) => uri)).toEqual(["silent", "told"]);
  }, 60_000);

  it("if the scheduler dies after the success is stored, before it receives the answer", async () => {
    const { allow, events, isAtWork, stage, start } = await producing();
    const first = await start("first");
    await stage.installation.trigger("produce", "run");
    await isAtWork("run");
    const reached = stage.pauseAtCommit(first, async () => (await events()).length > 0);
    allow("run");
    await reached;
    await first.kill();
    expect((await stage.task("make")).state).toBe("success");
    stage.proxy.set({ kind: "pass" });
    await start("second");
    expect(await stage.runEnds()).toBe("success");
    expect(await events()).toEqual(once);
  }, 60_000);

  it("if answers to commits get lost", async () => {
    const { allow, events, stage, start } = await producing();
    await start("first");
    stage.proxy.set({ kind: "drop-commit-answer", probability: 0.2 });
    const names = Array.from({ length: 15 }, (_, n) => `run_${String(n).padStart(2, "0")}`);
    for (const name of names) {
      allow(name);
      await stage.installation.trigger("produce", name);
    }
    await stage.until("all have ended", async () => {
      const sql = "SELECT count(*) AS n FROM dag_run WHERE state = 'success'";
      return (await stage.installation.sql<{ n: number }>(sql))[0]?.n === names.length;
    });
    expect(stage.proxy.faults.dropped).toBeGreaterThan(0);
    const found = (await events()).map(({ source_run_id, uri }) => `${uri} ${source_run_id}`);
    expect(found).toEqual(["silent", "told"].flatMap((uri) => names.map((name) => `${uri} ${name}`)));
  }, 60_000);
});

describe("puts every event in exactly one run of a DAG", () => {
  let rig: TriggererRig;
  beforeEach(async () => {
    rig = await TriggererRig.open();
    return () => rig.close();
  });

  const leaf = (key: string): SignalCondition => ({
    ...{ kind: "signal", namespace: "asset", key, where: null, equals: null, inRun: false },
  });
  const all = (...of: SignalCondition[]): SignalCondition => ({ kind: "all", of });

  const publish = async (dagId: string, when: SignalCondition, more: Partial<GatherManifest>) => {
    const gather: GatherManifest = { each: "batch", partitioned: false, assets: [], ...more };
    const schedule: ScheduleManifest = { kind: "signal", when, route: null, gather };
    await seedDag(rig.db, dagId, { schedule });
  };
  const DAGS = ["each", "batch", "both", "parts"];
  const publishAll = async () => {
    await publish("each", leaf("a"), { each: "event" });
    await publish("batch", leaf("a"), {});
    await publish("both", all(leaf("a"), leaf("b")), {});
    await publish("parts", leaf("a"), { partitioned: true });
    await rig.notify("dags");
  };
  const send = async (uri: string, payload: number) => {
    const partition = payload % 2 === 0 ? "even" : "odd";
    await rig.db.transaction((tx) => recordEvent(tx, { uri, payload, partition, sender: "test" }));
    await rig.notify("signals");
  };

  interface Made {
    readonly conf: { readonly assetEvents: readonly { id: number; uri: string; payload: number }[] };
    readonly partition_key: string | null;
    readonly linked: readonly number[];
  }
  const runs = (dagId: string) =>
    rig.db.rows<Made>(
      adhoc(`SELECT r.conf, r.partition_key,
               ARRAY(SELECT x.event_id FROM asset_event_run x WHERE x.dag_run_id = r.id ORDER BY 1) AS linked
             FROM dag_run r WHERE r.dag_id = $1 ORDER BY r.id`),
      [dagId],
    );
  const events = async (dagId: string) => (await runs(dagId)).flatMap(({ conf }) => conf.assetEvents);
  const heard = async (dagId: string, uri: string) =>
    (await events(dagId)).filter((event) => event.uri === uri).map(({ payload }) => payload);
  const haveHeard = (count: number) =>
    rig.until(
      async () => {
        for (const dagId of DAGS) if ((await heard(dagId, "a")).length < count) return false;
        return true;
      },
      `${count} events in runs of all DAGs`,
      60_000,
    );

  /** All events exactly once, in order, in runs that have events and name them. */
  const expectAll = async (count: number) => {
    const numbers = Array.from({ length: count }, (_, n) => n);
    for (const dagId of DAGS) {
      const found = await heard(dagId, "a");
      expect(dagId === "parts" ? found.toSorted((a, b) => a - b) : found).toEqual(numbers);
      for (const { conf, linked } of await runs(dagId))
        expect(linked.map(Number)).toEqual(conf.assetEvents.map(({ id }) => id).toSorted((a, b) => a - b));
    }
    for (const { conf } of await runs("each")) expect(conf.assetEvents).toHaveLength(1);
    for (const { conf } of await runs("both"))
      expect(new Set(conf.assetEvents.map(({ uri }) => uri))).toEqual(new Set(["a", "b"]));
    for (const { conf, partition_key: key } of await runs("parts"))
      for (const { payload } of conf.assetEvents) expect(key).toBe(payload % 2 === 0 ? "even" : "odd");
  };

  it("if two triggerers poll at the same time", async () => {
    await publishAll();
    await Promise.all([rig.triggerer(), rig.triggerer()]);
    for (let n = 0; n < 100; n++) await send("a", n);
    await send("b", 0);
    await haveHeard(100);
    await expectAll(100);
  }, 90_000);

  it("if answers to commits get lost and the database restarts", async () => {
    const proxy = await pgProxy(rig.url);
    await publishAll();
    await rig.triggerer({ url: proxy.url });
    proxy.set({ kind: "drop-commit-answer", probability: 0.3 });
    let sent = 0;
    for (; sent < 40 || (proxy.faults.dropped === 0 && sent < 1_000); sent++) {
      await send("a", sent);
      // By chance none of the first answers may have been lost.
      if (sent >= 40) await new Promise((go) => setTimeout(go, 20));
    }
    proxy.set({ kind: "cut" });
    await send("a", sent++);
    proxy.set({ kind: "pass" });
    await send("b", 0);
    await haveHeard(sent);
    await expectAll(sent);
    expect(proxy.faults.dropped).toBeGreaterThan(0);
    await proxy.close();
  }, 90_000);

  it("if triggerers are killed while they create runs", async () => {
    await publishAll();
    let sent = 0;
    for (let killed = 0; killed < 3; killed++) {
      const home = `${rig.root}/killed-${killed}`;
      const place = { home, databaseUrl: rig.url, ledger: `${home}.ledger`, notifies: true };
      const triggerer = new TriggererProcess(place);
      onTestFinished(() => triggerer.discard());
      await triggerer.ready;
      const target = sent + 40;
      for (; sent < target + 40; sent++) await send("a", sent);
      // Kills it as soon as some events are stored and the rest is in progress.
      await rig.until(async () => (await heard("each", "a")).length >= target, "some of it", 40_000);
      await triggerer.kill();
    }
    await send("b", 0);
    await rig.triggerer();
    await haveHeard(sent);
    await expectAll(sent);
  }, 120_000);

  it("with up to a thousand events per run", async () => {
    await publish("batch", leaf("a"), {});
    await rig.db.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT tw_lock_signals(ARRAY['asset'], ARRAY['a'])"));
      await tx.rows(
        adhoc(`INSERT INTO signal (namespace, key, value, sender)
               SELECT 'asset', 'a', json_build_object('payload', n), 'test' FROM generate_series(0, 2499) AS n ORDER BY n`),
      );
    });
    await rig.triggerer();
    await rig.until(async () => (await events("batch")).length >= 2_500, "all of it", 40_000);
    expect((await runs("batch")).map(({ conf }) => conf.assetEvents.length)).toEqual([1_000, 1_000, 500]);
    expect(await heard("batch", "a")).toEqual(Array.from({ length: 2_500 }, (_, n) => n));
  }, 60_000);
});
