/**
 * The table of the talk on deferrable operators: the slots used by 1,000 waiting sensors. Time is scaled down ten times,
 * which is to our disadvantage: waiting gets cheaper, starting and resuming a task does not.
 *
 * All runs wait concurrently, started one after the other, the longest first, so that no two of them end together. The
 * sensors in poke mode are fewer, on a separate installation with a slot for each, and are extrapolated.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import type { Figure } from "../../result.ts";
import { openRig, type Rig } from "../../rig.ts";
import { digits } from "../../statistics.ts";
import { table } from "../../table.ts";
import { until } from "../../until.ts";
import { type AttemptTimes, recordAttempts } from "../attempt-times.ts";
import { pokingFile, waitingFile } from "../dags.ts";
import { type WaitingRig, withWaitingRig } from "../waiting-rig.ts";

const SCALE = 10;
const SECONDS = [3, 6, 12, 24, 48];
const SENSORS = 1_000;
const POKING = 8;

/** Slot-seconds. */
interface SlotTime {
  readonly running: number;
  readonly occupied: number;
}

export interface SlotRow {
  /** As in the talk. */
  readonly wait: string;
  readonly poke: SlotTime;
  /** Sensors that start at their trigger: no worker runs them. */
  readonly sensors: SlotTime;
  /** Operators that run, defer, and resume in a worker. */
  readonly operators: SlotTime;
}

export async function slotTime(options: { quick: boolean }): Promise<{ figures: Figure[]; rows: SlotRow[] }> {
  const seconds = options.quick ? SECONDS.slice(0, 2) : SECONDS;
  const times = recordAttempts();
  const poking = await openRig({ parallelism: POKING * seconds.length });
  try {
    const rows = await withWaitingRig((waiting) => measure({ waiting, poking, times }, seconds));
    return { rows, figures: figuresOf(rows.at(-1) as SlotRow) };
  } finally {
    await poking.stop();
  }
}

interface Rigs {
  readonly waiting: WaitingRig;
  readonly poking: Rig;
  readonly times: ReadonlyMap<string, AttemptTimes>;
}

async function measure(rigs: Rigs, seconds: readonly number[]): Promise<SlotRow[]> {
  const { waiting, poking, times } = rigs;
  await poking.publish({ "poking.ts": pokingFile(seconds, POKING) });
  await waiting.publish({ "waiting.ts": waitingFile(seconds, SENSORS) });
  await poking.run(["warm_up"]);
  const pokes = await poking.create(seconds.map((s) => `poke_${s}`));
  await until("all poke", () => pokes.every((id) => isUnderWay(poking, id)));
  // The first tasks of a process load the bundle once, which is not measured here.
  await waiting.run(["operators_3"]);
  const ids = new Map<string, number>();
  for (const s of seconds.toReversed()) {
    for (const name of [`sensors_${s}`, `operators_${s}`]) {
      const created = await waiting.create([name]);
      await begun(waiting, created);
      ids.set(name, created[0] ?? 0);
    }
  }
  await waiting.ended([...ids.values()]);
  await poking.ended(pokes);
  const rows: SlotRow[] = [];
  for (const [at, s] of seconds.entries()) {
    rows.push({
      wait: digitsOfWait(s * SCALE),
      poke: await slots(poking, pokes[at] ?? 0, { times, factor: SENSORS / POKING }),
      sensors: await slots(waiting, ids.get(`sensors_${s}`) ?? 0, { times, factor: 1 }),
      operators: await slots(waiting, ids.get(`operators_${s}`) ?? 0, { times, factor: 1 }),
    });
  }
  return rows;
}

const WAITS = adhoc("SELECT count(*)::int AS n FROM deferral WHERE dag_run_id = ANY($1)");

/** All are waiting, or have ended: the first of the short ones may have ended when the last begins. */
async function begun(rig: Rig, ids: readonly number[]): Promise<void> {
  await until("all wait", async () => {
    await sleep(20);
    return (await rig.database.one<{ n: number }>(WAITS, [ids]))?.n === SENSORS;
  });
}

/** All of its tasks are running, or have ended: short ones may have ended by now. */
function isUnderWay({ scheduler }: Rig, id: number): boolean {
  const counts = scheduler["actors"].get(id)?.model.counts;
  return counts === undefined || counts.unfinished === counts.byState.running;
}

const QUEUED = adhoc(
  `SELECT attempt, 1000 * extract(epoch FROM queued_at)::float8 AS at FROM task_attempt
   WHERE dag_run_id = $1 AND queued_at IS NOT NULL
   UNION ALL
   SELECT attempt, 1000 * extract(epoch FROM queued_at)::float8 FROM task_instance
   WHERE dag_run_id = $1 AND queued_at IS NOT NULL`,
);

async function slots(
  rig: Rig,
  runId: number,
  how: { readonly times: ReadonlyMap<string, AttemptTimes>; readonly factor: number },
): Promise<SlotTime> {
  let [running, occupied] = [0, 0];
  for (const { attempt, at } of await rig.database.rows<{ attempt: string; at: number }>(QUEUED, [runId])) {
    const known = how.times.get(attempt);
    if (!known) throw new Error(`attempt ${attempt} was queued, and its executor never reported it`);
    running += known.endedAt - known.startedAt;
    occupied += known.endedAt - at;
  }
  return { running: (running * how.factor) / 1_000, occupied: (occupied * how.factor) / 1_000 };
}

function figuresOf(last: SlotRow): Figure[] {
  const of = (form: "sensors" | "operators", what: "running" | "occupied"): Figure => {
    const ours = last[form][what];
    const theirs = last.poke[what];
    const left = (100 * ours) / theirs;
    const atMost = what === "running" ? 0.5 : 1;
    const form_ = form === "sensors" ? "begun at their trigger" : "deferring in a worker";
    return {
      scenario: "a",
      what: `1,000 sensors of ${last.wait}, ${form_}: ${what} slot-seconds, of poke mode's`,
      value: left,
      unit: "%",
      bar: { atMost },
      note: `${less(left)} less; at full length ${less(left / SCALE)} less; ${digits(ours)} against ${digits(theirs)} s`,
    };
  };
  return [
    of("sensors", "running"),
    of("sensors", "occupied"),
    of("operators", "running"),
    of("operators", "occupied"),
  ];
}

export function slotTable(rows: readonly SlotRow[]): string {
  const cells = (row: SlotRow, what: "running" | "occupied") => {
    const { poke, sensors, operators } = row;
    const part = (ours: number) => [digits(ours), less((100 * ours) / poke[what])];
    return [row.wait, digits(poke[what]), ...part(sensors[what]), ...part(operators[what])];
  };
  const head = (what: string) => [what, "poke", "from the trigger", "less", "in a worker", "less"];
  const numbers = new Set([1, 2, 3, 4, 5]);
  const one = (what: "running" | "occupied") =>
    table(
      head(what),
      rows.map((row) => cells(row, what)),
      numbers,
    );
  return `Slot-seconds of 1,000 sensors. Time is scaled down ${SCALE} times: "8m" waited 48 s. The fixed cost is not scaled.
Poke mode: ${POKING} sensors of each length on a slot each, multiplied by ${SENSORS / POKING}; it looks every 0.1 s (every second at full length).

${one("running")}

${one("occupied")}`;
}

function less(left: number): string {
  // Not rounded up: 100 % means no cost at all.
  return `${(Math.floor(1_000 * (100 - left)) / 1_000).toFixed(3)} %`;
}

function digitsOfWait(seconds: number): string {
  return seconds < 60 ? `${seconds}s` : `${seconds / 60}m`;
}
