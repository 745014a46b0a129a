/**
 * Many triggers that poll every second, in one triggerer. A latency begins when a poll returns the event and ends with
 * the first line of the task's code in its next attempt. It does not include the poll interval, because the benchmark
 * never waits for a certain trigger: the next one that polls fires.
 */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import { cpuOf, type Resident } from "../../process-tree.ts";
import type { Figure } from "../../result.ts";
import { digits, quantile } from "../../statistics.ts";
import { until } from "../../until.ts";
import { hotFile } from "../dags.ts";
import { allDeferred, counted, type WaitingRig, withWaitingRig } from "../waiting-rig.ts";

const TASKS = 1_000;
/** Every trigger has polled, and most of the start-up work is done. */
const SETTLED_MS = 10_000;
const AT_REST_MS = 5_000;
const WARM_UPS = 100;
const SINGLE = 200;
const PER_SECOND = 100;

export async function hotTriggers(options: { readonly quick: boolean }): Promise<Figure[]> {
  const runs = options.quick ? 1 : 10;
  const seconds = options.quick ? 3 : 10;
  const triggers = runs * TASKS;
  return withWaitingRig(async (rig) => {
    const socketPath = join(rig.home, "bench.sock");
    const server = createServer().listen(socketPath);
    try {
      const connected = once(server, "connection") as Promise<[Socket]>;
      await rig.publish({ "hot.ts": hotFile(TASKS, socketPath) });
      const ids = await rig.create(Array.from({ length: runs }, () => "hot"));
      await allDeferred(rig, ids, triggers);
      await claimed(rig, triggers);
      const [socket] = await connected;
      const control = new Control(socket);
      await warmUp(rig, ids, control);
      await sleep(options.quick ? 2_000 : SETTLED_MS);
      const idle = await atRest(rig, control);
      const single = await oneAtATime(rig, ids, control);
      await sleep(500);
      const many = await atRate(rig, ids, { control, seconds });
      socket.destroy();
      return [
        ...restFigures(`${triggers.toLocaleString("en-US")} hot triggers, each polling every second`, idle),
        latencyFigure("fire to running again, one at a time", single, 100),
        latencyFigure(`fire to running again, ${PER_SECOND} a second`, many.resumed, 250),
        lagFigure("meanwhile", many.lag),
      ];
    } finally {
      server.close();
    }
  });
}

const CLAIMED = adhoc("SELECT count(*)::int AS n FROM trigger WHERE owner_job IS NOT NULL");

async function claimed(rig: WaitingRig, triggers: number): Promise<void> {
  await until("all claimed", async () => {
    await sleep(50);
    return (await rig.database.one<{ n: number }>(CLAIMED))?.n === triggers;
  });
}

/** The benchmark's end of the socket; the other one is in dags.ts. */
class Control {
  readonly #socket: Socket;
  readonly #answers: AsyncIterator<string>;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#answers = createInterface(socket)[Symbol.asyncIterator]();
  }

  fire(): void {
    this.#socket.write("fire\n");
  }

  async lagOver(ms: number): Promise<number[]> {
    this.#socket.write("reset\n");
    await sleep(ms);
    return this.lag();
  }

  reset(): void {
    this.#socket.write("reset\n");
  }

  async lag(): Promise<number[]> {
    this.#socket.write("lag\n");
    const { value } = await this.#answers.next();
    return JSON.parse(value as string) as number[];
  }
}

/** Ensures that each task process has loaded the code. */
async function warmUp(rig: WaitingRig, ids: readonly number[], control: Control): Promise<void> {
  for (let n = 0; n < WARM_UPS; n++) control.fire();
  await until("all have run once", () => counted(rig, ids, "success") === WARM_UPS);
  await sleep(500);
}

async function oneAtATime(rig: WaitingRig, ids: readonly number[], control: Control): Promise<Resumption[]> {
  const from = Date.now();
  for (let n = 0; n < SINGLE; n++) {
    const done = counted(rig, ids, "success");
    control.fire();
    await until("it has run again", () => counted(rig, ids, "success") > done);
    // Random, so that it is not in step with periodic work.
    await sleep(20 + 60 * Math.random());
  }
  return resumptions(rig, ids, from);
}

async function atRate(
  rig: WaitingRig,
  ids: readonly number[],
  how: { readonly control: Control; readonly seconds: number },
): Promise<{ resumed: Resumption[]; lag: number[] }> {
  const { control, seconds } = how;
  const done = counted(rig, ids, "success");
  const from = Date.now();
  control.reset();
  const started = performance.now();
  const fires = PER_SECOND * seconds;
  for (let n = 0; n < fires; n++) {
    control.fire();
    await sleep(Math.max(0, started + ((n + 1) * 1_000) / PER_SECOND - performance.now()));
  }
  await until("all have run again", () => counted(rig, ids, "success") === done + fires);
  const lag = await control.lag();
  return { resumed: await resumptions(rig, ids, from), lag };
}

/** Times of one fire, in milliseconds: poll returned, stored by the triggerer, read by the scheduler, running again. */
interface Resumption {
  readonly fired: number;
  readonly stored: number;
  readonly taken: number;
  readonly resumed: number;
}

const RESUMPTIONS = adhoc(
  `SELECT (x.value->>'firedAt')::float8 AS fired, 1000 * extract(epoch FROM d.fired_at)::float8 AS stored,
          1000 * extract(epoch FROM d.ended_at)::float8 AS taken, (x.value->>'resumedAt')::float8 AS resumed
   FROM xcom x JOIN deferral d USING (dag_run_id, task_id, map_index)
   WHERE x.dag_run_id = ANY($1) AND x.key = 'return_value' AND (x.value->>'firedAt')::float8 >= $2`,
);

async function resumptions(rig: WaitingRig, ids: readonly number[], from: number): Promise<Resumption[]> {
  // The last one may have ended in memory and not be stored yet.
  await sleep(200);
  return rig.database.rows<Resumption>(RESUMPTIONS, [ids, from]);
}

interface Rest {
  /** Megabytes, and CPU time as a fraction of one core. */
  readonly triggerer: Resident & { readonly busy: number };
  readonly runner: Resident & { readonly busy: number };
  readonly lag: readonly number[];
}

async function atRest({ triggerer }: WaitingRig, control: Control): Promise<Rest> {
  const [own, runner] = [triggerer.processes()[0], triggerer.runner()];
  if (!own || !runner) throw new Error("no triggerer, or no trigger process");
  const [before, at] = [[own, runner].map(({ pid }) => cpuOf(pid)), performance.now()];
  const lag = await control.lagOver(AT_REST_MS);
  const ms = performance.now() - at;
  const busy = [own, runner].map(({ pid }, n) => (cpuOf(pid) - (before[n] ?? 0)) / ms);
  return { lag, triggerer: { ...own, busy: busy[0] ?? 0 }, runner: { ...runner, busy: busy[1] ?? 0 } };
}

function restFigures(what: string, { triggerer, runner, lag }: Rest): Figure[] {
  const percent = (part: number) => digits(100 * part);
  return [
    {
      scenario: "c",
      what: `${what}: memory of the process they run in`,
      value: runner.megabytes,
      unit: "MB",
      note: `and ${digits(triggerer.megabytes)} MB of the triggerer itself; CPU ${percent(runner.busy)} and ${percent(triggerer.busy)} % of a core`,
    },
    lagFigure(`${what}, none fires`, lag),
  ];
}

function lagFigure(what: string, lag: readonly number[]): Figure {
  return {
    scenario: "c",
    what: `${what}: lag of the triggers' loop, p99`,
    value: quantile(lag, 0.99),
    unit: "ms",
    note: `p50 ${digits(quantile(lag, 0.5))}, longest ${digits(quantile(lag, 1))} ms: how late a timer of 10 ms comes`,
  };
}

function latencyFigure(what: string, resumed: readonly Resumption[], atMost: number): Figure {
  const ms = resumed.map((each) => each.resumed - each.fired);
  const longest = resumed.find((each) => each.resumed - each.fired === quantile(ms, 1));
  const p50 = (part: (each: Resumption) => number) => digits(quantile(resumed.map(part), 0.5));
  const parts = [
    p50((each) => each.stored - each.fired),
    p50((each) => each.taken - each.stored),
    p50((each) => each.resumed - each.taken),
  ];
  const worst = longest && [
    longest.stored - longest.fired,
    longest.taken - longest.stored,
    longest.resumed - longest.taken,
  ];
  return {
    scenario: "c",
    what: `${what}, p99`,
    value: quantile(ms, 0.99),
    unit: "ms",
    bar: { atMost },
    note: `p50 ${digits(quantile(ms, 0.5))} (${parts.join(" + ")}: to the triggerer's commit, to the scheduler's, to the task's code), p90 ${digits(quantile(ms, 0.9))}, longest ${digits(quantile(ms, 1))} (${worst?.map(digits).join(" + ")}) ms of ${ms.length}`,
  };
}
