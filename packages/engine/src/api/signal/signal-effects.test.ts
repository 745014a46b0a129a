/** Signals, what they cause in real runs, and the way back from a run or a try. */
import { beforeAll, expect, it } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { recordEvent } from "../../store/asset/asset-events.ts";
import { adhoc } from "../../store/database/database.ts";
import { type SignalDraft, sendSignals } from "../../store/signal/signals.ts";
import { recordWebhook } from "../../store/trigger/webhooks.ts";

let rig: SchedulerRig;
let tw: Installation;

interface Cause {
  readonly version: number;
  readonly kind: string;
  readonly try_number: number;
  readonly key: string | null;
}
interface Effect {
  readonly kind: string;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string | null;
  readonly try_number: number;
  readonly state: string;
  readonly latency_seconds: number;
  readonly started_at: string | null;
  readonly wait: string | null;
}
interface Chain {
  readonly source: { readonly kind: string; readonly name: string; readonly task_id: string | null };
  readonly caused_by: readonly Cause[];
  readonly effects: readonly Effect[];
  readonly more: boolean;
  readonly recipients: readonly {
    readonly name: string;
    readonly state: string;
    readonly error: string | null;
  }[];
}

beforeAll(async () => {
  rig = await SchedulerRig.open();
  tw = await Installation.open({ beside: { db: rig.db, wakeUps: rig.wakeUps } });
  await rig.publish({
    "chain.ts": `
      import { all, asset, dag, on, Operator, restart, signal, SignalAction, start, stop, WebhookTrigger } from "tradewind";
      const [a, b, paid] = [signal("a"), signal("b"), signal("order.paid")];
      export const scheduled = dag("scheduled", { schedule: on(paid) }, (d) => {
        d.task("book", (_, ctx) => ctx.send(signal("booked"), 1));
      });
      export const joint = dag("joint", { schedule: on(all(a, b)) }, (d) => void d.task("one", () => {}));
      export const hooked = dag("hooked", { schedule: on(new WebhookTrigger({ name: "push" })) }, (d) => void d.task("one", () => {}));
      export const lake = dag("lake", { schedule: on(asset("lake/orders")) }, (d) => void d.task("one", () => {}));
      export const waits = dag("waits", (d) => {
        d.task("single", (_, ctx) => ctx.until("answer", signal("answer")));
        d.task("both", (_, ctx) => ctx.until("all of them", all({ answer: signal("answer"), second: signal("second") })));
      });
      class Reacts extends Operator<void, void> {
        constructor() { super(); this.setSignal(signal("react")); }
        override onSignal() { return SignalAction.START; }
        execute() {}
      }
      export const driven = dag("driven", { stop: signal("end") }, (d) => {
        d.task("batch", { on: [start(signal("go"))] }, () => {});
        d.task("stream", { lifetime: "streaming", on: [restart(signal("again")), stop(signal("halt"))] },
          (_, ctx) => new Promise((resolve) => ctx.abort.addEventListener("abort", resolve, { once: true })));
        d.operator("reacts", new Reacts());
      });
    `,
  });
  await rig.triggerer();
  await rig.scheduler();
}, 60_000);

async function send(key: string, more: Partial<SignalDraft> = {}): Promise<number> {
  const [sent] = await sendSignals(rig.db, [
    { namespace: "default", key, value: 1, sender: "shop", ...more },
  ]);
  rig.wakeUps.send("signals");
  return sent!.id;
}

async function chain(version: number, query = ""): Promise<Chain> {
  const answer = await tw.call("GET", `/signals/${version}/effects${query}`);
  expect(answer.statusCode).toBe(200);
  return answer.json();
}

async function effects(version: number, count: number): Promise<Effect[]> {
  await rig.until(async () => (await chain(version)).effects.length >= count, `${count} effects`);
  const found = (await chain(version)).effects;
  expect(found).toHaveLength(count);
  for (const each of found) {
    expect(each.latency_seconds).toBeGreaterThanOrEqual(0);
    expect(each.latency_seconds).toBeLessThan(60);
  }
  return [...found];
}

async function causes(dag: string, run: string, query = ""): Promise<Cause[]> {
  const answer = await tw.call(
    "GET",
    `/dags/${dag}/dagRuns/${encodeURIComponent(run)}/upstreamSignals${query}`,
  );
  expect(answer.statusCode).toBe(200);
  return answer.json().signals;
}

it("links a signal with the run that it created, and a signal of that run with both", async () => {
  const version = await send("order.paid");
  const [made] = await effects(version, 1);
  expect(made).toMatchObject({ kind: "create", dag_id: "scheduled", task_id: null, wait: null });
  expect(await causes("scheduled", made!.dag_run_id)).toMatchObject([
    { version, kind: "create", key: "order.paid", try_number: 0 },
  ]);
  const own = adhoc("SELECT id FROM signal WHERE key = 'booked'");
  await rig.until(async () => (await rig.db.rows(own)).length === 1, "the signal of the task");
  const [booked] = await rig.db.rows<{ id: number }>(own);
  const { caused_by, source } = await chain(booked!.id);
  expect(source).toMatchObject({ kind: "task", task_id: "book", dag_run_id: made!.dag_run_id });
  expect(caused_by).toMatchObject([{ version, key: "order.paid" }]);
  expect((await chain(version)).source).toMatchObject({ kind: "client", name: "shop" });
});

it("names every part of a joint condition", async () => {
  const versions = [await send("a"), await send("b")];
  const [made] = await effects(versions[1]!, 1);
  expect(await effects(versions[0]!, 1)).toMatchObject([{ dag_run_id: made!.dag_run_id }]);
  const found = await causes("joint", made!.dag_run_id);
  expect(found.map(({ version }) => version)).toEqual(versions);
});

it("links webhook calls and asset events with their runs", async () => {
  const call = { name: "push", sender: "hub", value: { body: 1, headers: {} } };
  await rig.db.transaction((tx) => recordWebhook(tx, call));
  rig.wakeUps.send("fired");
  const [rung] = await rig.db.rows<{ id: number }>(
    adhoc("SELECT id FROM signal WHERE namespace = 'webhook'"),
  );
  expect(await effects(rung!.id, 1)).toMatchObject([{ kind: "create", dag_id: "hooked" }]);
  const event = { uri: "lake/orders", payload: null, partition: null, sender: "etl" };
  const version = await rig.db.transaction((tx) => recordEvent(tx, event));
  rig.wakeUps.send("signals");
  const [made] = await effects(version, 1);
  expect(made).toMatchObject({ kind: "create", dag_id: "lake" });
  expect(await causes("lake", made!.dag_run_id)).toMatchObject([{ version, key: "lake/orders" }]);
});

it("links a signal with the waits that it ended, with each signal of a joint wait", async () => {
  const id = await rig.trigger("waits", { runId: "w" });
  await rig.until(async () => {
    const { both, single } = await rig.tasks(id);
    return single?.state === "deferred" && both?.state === "deferred";
  }, "both waits");
  const answer = await send("answer");
  const second = await send("second");
  expect(await rig.ended(id)).toBe("success");
  const found = await effects(answer, 2);
  expect(found.map(({ task_id, wait }) => [task_id, wait]).sort()).toEqual([
    ["both", "all of them"],
    ["single", "answer"],
  ]);
  for (const each of found) {
    expect(each).toMatchObject({ kind: "resume", dag_run_id: "w", state: "success" });
    expect(each.started_at).not.toBeNull();
  }
  expect(await effects(second, 1)).toMatchObject([{ kind: "resume", task_id: "both" }]);
  const back = await causes("waits", "w", "?task_id=both");
  expect(back.map(({ version }) => version)).toEqual([answer, second]);
  expect(await causes("waits", "w")).toEqual([]);
}, 30_000);

it("links signals with starts, restarts and stops of tasks, and with the close of their run", async () => {
  const id = await rig.trigger("driven", { runId: "d" });
  await rig.until(async () => (await rig.tasks(id))["stream"]?.state === "running", "the stream");
  const first = await send("go");
  const [started] = await effects(first, 1);
  expect(started).toMatchObject({ kind: "start", task_id: "batch", try_number: 1 });
  await rig.until(async () => (await rig.tasks(id))["batch"]?.state === "success", "the first start");
  const second = await send("go");
  expect(await effects(second, 1)).toMatchObject([{ kind: "start", task_id: "batch", try_number: 2 }]);
  expect(await effects(first, 1)).toMatchObject([{ try_number: 1, state: "success" }]);
  const react = await send("react");
  expect(await effects(react, 1)).toMatchObject([{ kind: "start", task_id: "reacts" }]);
  const again = await send("again");
  expect(await effects(again, 1)).toMatchObject([{ kind: "restart", task_id: "stream", try_number: 2 }]);
  await rig.until(async () => (await rig.tasks(id))["stream"]?.state === "running", "the second try");
  const halt = await send("halt");
  expect(await effects(halt, 1)).toMatchObject([{ kind: "stop", task_id: "stream" }]);
  const end = await send("end");
  expect(await effects(end, 1)).toMatchObject([{ kind: "close", task_id: null, dag_run_id: "d" }]);
  expect(await rig.ended(id)).toBe("success");
  expect(await causes("driven", "d", "?task_id=batch")).toMatchObject([
    { version: second, try_number: 2 },
    { version: first, try_number: 1 },
  ]);
  expect(await causes("driven", "d", "?task_id=batch&try_number=1")).toMatchObject([{ version: first }]);
}, 60_000);

it("returns the first effects of a signal with many, and says that there are more", async () => {
  const version = await send("order.many");
  await rig.db.rows(
    adhoc(`INSERT INTO signal_effect (signal_id, dag_run_id, task_id, map_index, try_number, kind)
           SELECT $1, id, 'single', n, 1, 'resume' FROM dag_run, generate_series(0, 4) AS n WHERE run_id = 'w'`),
    [version],
  );
  const found = await chain(version, "?limit=3");
  expect(found.effects).toHaveLength(3);
  expect(found.more).toBe(true);
  expect((await chain(version)).more).toBe(false);
});

it("says where each listener stands, and which have given the signal up", async () => {
  const version = await send("sales.eu");
  const listener = adhoc(
    `INSERT INTO signal_listener (name, tx, signal_id, filter)
     SELECT $1, CASE WHEN $3 THEN s.tx ELSE '0'::xid8 END, CASE WHEN $3 THEN s.id ELSE 0 END, $2::json FROM signal s WHERE s.id = $4`,
  );
  const filter = (key: string, sender: string | null = null) =>
    JSON.stringify({ namespace: "default", keys: [key], sender });
  await rig.db.rows(listener, ["reached", filter("sales.*", "shop"), true, version]);
  await rig.db.rows(listener, ["behind", filter("sales.*"), false, version]);
  await rig.db.rows(listener, ["other", filter("cost.*"), true, version]);
  await rig.db.rows(listener, ["other sender", filter("*", "else"), true, version]);
  await rig.db.rows(listener, ["failing", filter("*"), true, version]);
  await rig.db.rows(
    adhoc(`INSERT INTO signal_retry (listener, namespace, key, signal_id, attempts, error, retry_at)
           VALUES ('failing', 'default', 'sales.eu', $1, 2, 'no disk', now() + interval '1 hour')`),
    [version],
  );
  await rig.db.rows(
    adhoc(`INSERT INTO signal_dead_letter (listener, signal_id, tx, namespace, key, sender, sent_at, error, attempts)
           SELECT 'gone', id, tx, namespace, key, sender, created_at, 'bad value', 5 FROM signal WHERE id = $1`),
    [version],
  );
  expect((await chain(version)).recipients.map(({ error, name, state }) => [name, state, error])).toEqual([
    ["gone", "dead", "bad value"],
    ["behind", "waiting", null],
    ["failing", "retrying", "no disk"],
    ["reached", "received", null],
  ]);
});

it("rejects unknown signals, and keeps the cause of a run whose signal was deleted", async () => {
  expect((await tw.call("GET", "/signals/999999999/effects")).statusCode).toBe(404);
  const version = await send("order.paid");
  const [made] = await effects(version, 1);
  await rig.db.rows(adhoc("DELETE FROM signal WHERE id = $1"), [version]);
  expect(await causes("scheduled", made!.dag_run_id)).toMatchObject([{ version, kind: "create", key: null }]);
});
