/** The signals that started a task, as the task sees them; and retried dead letters of an `onSignal`. */
import { readFileSync, writeFileSync } from "node:fs";
import type { Json } from "@tradewind/sdk/manifest";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { retryLetter, submitManualCommand } from "../store/drive/manual-commands.ts";
import { sendSignals } from "../store/signal/signals.ts";
import { deleteSignals } from "../store/signal/signals-retention.ts";
import type { SchedulerJob } from "./job/scheduler-job.ts";

let rig: SchedulerRig;
let scheduler: SchedulerJob;

const notes = (): string[] => {
  try {
    return readFileSync(`${rig.root}/notes`, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
};
const notesOf = (about: string) => notes().filter((line) => line.startsWith(`${about} `));

async function send(key: string, value: Json = null): Promise<number> {
  const [sent] = await sendSignals(rig.db, [{ namespace: "default", key, value, sender: "test" }]);
  rig.wakeUps.send("signals");
  return sent!.id;
}

async function start(dagId: string, id: number, taskId: string, action: "start" | "restart"): Promise<void> {
  const { run_id: runId } = await rig.run(id);
  await rig.db.transaction((tx) => submitManualCommand(tx, { dagId, runId, taskId, action, user: "Ann" }));
  rig.wakeUps.send(`run:${id}`);
}

const letters = (id: number) =>
  rig.db.rows<{ id: number; signal_id: number; error: string; attempts: number; retry_at: Date | null }>(
    adhoc(`SELECT d.* FROM signal_dead_letter d JOIN dag_run r ON r.id = $1
           WHERE d.listener LIKE 'task:' || r.dag_id || '/' || r.run_id || '/%' ORDER BY d.id`),
    [id],
  );

const isFixed = (is: boolean) => writeFileSync(`${rig.root}/fixed`, is ? "yes" : "no");

beforeAll(async () => {
  rig = await SchedulerRig.open();
  isFixed(false);
  await rig.publish({
    "causes.ts": `
      import { all, dag, Operator, restart, signal, SignalAction, start, type IncomingSignal, type TaskContext } from "tradewind";
      import { appendFileSync, readFileSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      const root = ${JSON.stringify(rig.root)};
      const note = (text: string) => appendFileSync(root + "/notes", text + "\\n");
      const isFixed = () => readFileSync(root + "/fixed", "utf8") === "yes";
      const aborted = (abort: AbortSignal) => new Promise<void>((resolve) => abort.aborted ? resolve() : abort.addEventListener("abort", () => resolve()));
      const hourly = {
        "~standard": {
          version: 1 as const,
          vendor: "test",
          validate: (value: unknown) => typeof (value as { hour: number }).hour === "number"
            ? { value: value as { hour: number } }
            : { issues: [{ message: "expected an hour" }] },
          types: {} as { input: { hour: number }; output: { hour: number } },
        },
      };
      const watermark = signal("watermark", hourly);
      const model = signal<string>("model");
      const hourOf = (ctx: TaskContext) => ctx.startSignals.find((heard) => watermark.is(heard))?.value.hour;
      const seen = (ctx: TaskContext) => ctx.startSignals.map(({ key, value }) => key + "=" + JSON.stringify(value)).join(" ");

      export const hours = dag("hours", { stop: signal("end.hours") }, (d) => {
        d.task("train", { on: [start(watermark)], retries: 2, retryDelay: 20 }, async (_, ctx) => {
          note("train " + hourOf(ctx) + " in try " + ctx.tryNumber);
          if (hourOf(ctx) === 2 && !isFixed()) throw new Error("not yet");
        });
        d.task("both", { on: [start(all(watermark, model))] }, (_, ctx) => note("both " + seen(ctx)));
        d.task("serve", { lifetime: "streaming", on: [start(watermark, { once: true }), restart(model)] }, async (_, ctx) => {
          note("serve " + seen(ctx));
          await aborted(ctx.abort);
        });
      });
      export const taken = dag("taken", { stop: signal("end.taken") }, (d) => {
        d.task("slow", { on: [start(watermark)], retries: 3, retryDelay: 20 }, async (_, ctx) => {
          note("slow " + hourOf(ctx));
          while (!isFixed()) await sleep(50, null, { signal: ctx.abort });
          note("slow-done " + hourOf(ctx));
        });
      });
      class Judge extends Operator<{}, void> {
        constructor() { super({}); this.setSignal(signal<number>("score")); }
        override onSignal({ value, version }: IncomingSignal) {
          if (value === 13 && !isFixed()) throw new Error("thirteen is beyond me");
          note("asked " + value);
          return SignalAction.START;
        }
        async execute(ctx: TaskContext) { note("judged " + seen(ctx)); }
      }
      export const judging = dag("judging", { stop: signal("end.judging") }, (d) => void d.operator("judge", new Judge()));
    `,
  });
  scheduler = await rig.scheduler();
});

describe("a started task", () => {
  it("receives the signals that started it, in every try", async () => {
    isFixed(false);
    const id = await rig.trigger("hours");
    for (const hour of [1, 2, 3]) await send("watermark", { hour });
    await rig.until(async () => notesOf("train").length >= 3, "the second try for hour 2");
    isFixed(true);
    await rig.until(async () => notesOf("train").some((line) => line.startsWith("train 3")), "hour 3");
    const hours = notesOf("train").map((line) => Number(line.split(" ")[1]));
    expect(hours.filter((hour) => hour === 2).length).toBeGreaterThan(1);
    expect([...hours].sort()).toEqual(hours);
    await send("model", "m1");
    await rig.until(async () => notesOf("both").length === 1 && notesOf("serve").length === 2, "the model");
    // Of several signals for one part of a condition, the last one counts.
    expect(notesOf("both")).toEqual(['both watermark={"hour":3} model="m1"']);
    await send("model", "m2");
    await rig.until(async () => notesOf("serve").length === 3, "the next model");
    expect(notesOf("serve")).toEqual([
      'serve watermark={"hour":1}',
      'serve model="m1" watermark={"hour":1}',
      'serve model="m2" watermark={"hour":1}',
    ]);
    await start("hours", id, "serve", "restart");
    await rig.until(async () => notesOf("serve").length === 4, "a manual restart");
    expect(notesOf("serve").at(-1)).toBe('serve model="m2" watermark={"hour":1}');
    await start("hours", id, "train", "start");
    await rig.until(async () => notesOf("train").at(-1)!.startsWith("train undefined"), "a manual start");
    await send("watermark", { hour: "late" });
    await rig.until(
      async () => (await rig.tasks(id)).train!.try_number > 4 && (await rig.states(id)).train === "success",
      "a start by an invalid value",
    );
    expect(notesOf("train").at(-1)).toMatch(/^train undefined/);
    await send("end.hours");
    expect(await rig.ended(id)).toBe("success");
  });

  it("sees the same signals after a take-over, and the log keeps them until then", async () => {
    isFixed(false);
    const id = await rig.trigger("taken");
    const old = adhoc("UPDATE signal SET created_at = now() - interval '1 year' WHERE id = $1");
    const versions: number[] = [];
    for (const hour of [7, 8]) versions.push(await send("watermark", { hour }));
    await rig.until(async () => notesOf("slow").length === 1, "hour 7 to start");
    await rig.until(async () => {
      const sql = adhoc("SELECT 1 FROM run_start WHERE dag_run_id = $1 AND task_id = 'slow'");
      return (await rig.db.rows(sql, [id])).length === 1;
    }, "a stored start for hour 8");
    await scheduler.stop(0);
    for (const version of versions) await rig.db.rows(old, [version]);
    while ((await deleteSignals(rig.db, { olderThanMs: 86_400_000, staleMs: 0, batch: 1_000 })) > 0);
    isFixed(true);
    scheduler = await rig.scheduler();
    await rig.until(async () => notesOf("slow-done").length === 2, "both hours");
    expect(notesOf("slow-done")).toEqual(["slow-done 7", "slow-done 8"]);
    await send("end.taken");
    expect(await rig.ended(id)).toBe("success");
  });
});

describe("a dead letter of an onSignal", () => {
  const retry = async (letterId: number) => {
    const result = await rig.db.transaction((tx) => retryLetter(tx, letterId));
    if (result.kind === "retried" && result.dagRunId !== null) rig.wakeUps.send(`run:${result.dagRunId}`);
    return result.kind;
  };

  /** Skips the delay before the next call: it doubles from one second, and there are five calls. */
  const hurry = async (id: number) => {
    const due = "(state::jsonb #> '{tasks,judge,failedOnSignal,againAt}')::float8 > 0";
    const waits = adhoc(`SELECT 1 FROM run_drive WHERE dag_run_id = $1 AND ${due}`);
    if ((await rig.db.rows(waits, [id])).length === 0) return;
    await rig.db.transaction(async (tx) => {
      await tx.rows(adhoc("UPDATE dag_run SET generation = generation + 1 WHERE id = $1"), [id]);
      const now = "jsonb_set(state::jsonb, '{tasks,judge,failedOnSignal,againAt}', '0')::json";
      await tx.rows(adhoc(`UPDATE run_drive SET state = ${now} WHERE dag_run_id = $1 AND ${due}`), [id]);
    });
    rig.wakeUps.send(`run:${id}`);
  };
  const givenUp = (id: number, isSo: () => Promise<boolean>, what: string) =>
    rig.until(async () => (await isSo()) || (await hurry(id).then(() => false)), what, 60_000);

  it("is handled again on request, and is deleted with the effect of the answer", async () => {
    isFixed(false);
    const id = await rig.trigger("judging");
    await send("score", 13);
    await send("score", 9);
    const stored = adhoc("SELECT state FROM run_drive WHERE dag_run_id = $1");
    const asking = async () =>
      (await rig.db.one<{ state: { tasks?: Record<string, { failedOnSignal?: Json }> } }>(stored, [id]))
        ?.state.tasks?.judge?.failedOnSignal;
    await rig.until(async () => (await asking()) !== undefined, "the recorded failure");
    expect(await asking()).toMatchObject({ key: "score", error: "thirteen is beyond me" });
    await givenUp(id, async () => (await letters(id)).length === 1, "the letter");
    await rig.until(async () => notesOf("judged").length === 1, "later signals to be processed");
    expect(await asking()).toBeUndefined();
    const [letter] = await letters(id);
    // Still failing: the letter stays.
    expect(await retry(letter!.id)).toBe("retried");
    await givenUp(id, async () => (await letters(id))[0]?.retry_at === null, "the end of the retry");
    expect(await letters(id)).toMatchObject([{ attempts: 10, error: "thirteen is beyond me" }]);
    // The owner dies during the call: the next owner finds the letter and calls again.
    expect(await retry(letter!.id)).toBe("retried");
    await rig.until(async () => (await asking()) !== undefined, "a call of onSignal");
    await scheduler.stop(0);
    isFixed(true);
    scheduler = await rig.scheduler();
    await rig.until(async () => notesOf("judged").length === 2, "the task to start for it");
    expect(notesOf("judged")).toEqual(["judged score=9", "judged score=13"]);
    expect(await letters(id)).toEqual([]);
    expect(await retry(letter!.id)).toBe("unknown");
    await send("end.judging");
    expect(await rig.ended(id)).toBe("success");
  });

  it("stays a dead letter when the run has ended", async () => {
    const id = await rig.trigger("judging");
    await send("end.judging");
    expect(await rig.ended(id)).toBe("success");
    const { run_id: runId } = await rig.run(id);
    const bury = `INSERT INTO signal_dead_letter (listener, signal_id, tx, namespace, key, value, sender, sent_at, error, attempts)
      VALUES ($1, 1, '1', 'default', 'score', '1', 'test', now(), 'no', 5) RETURNING id`;
    const { id: letterId } = (await rig.db.one<{ id: number }>(adhoc(bury), [
      `task:judging/${runId}/judge`,
    ]))!;
    expect(await retry(letterId)).toBe("over");
    expect(await letters(id)).toMatchObject([{ retry_at: null }]);
  });
});
