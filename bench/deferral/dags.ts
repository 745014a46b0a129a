/** The DAG files of these benchmarks. The output of a resumed task has `firedAt` and `resumedAt`. */

/** Two ways to wait without a process: from the trigger on, and in a worker that defers. */
export function waitingFile(seconds: readonly number[], tasks: number): string {
  return `import { dag, Operator, type TaskContext, TimeDeltaSensor, TimeDeltaTrigger } from "tradewind";

class Wait extends Operator<{ ms: number }, boolean> {
  execute() {
    return this.defer({ trigger: new TimeDeltaTrigger({ delta: this.args.ms }), method: "over" });
  }
  over(_ctx: TaskContext) {
    return true;
  }
}

export default ${JSON.stringify(seconds)}.flatMap((s) => [
  dag("sensors_" + s, { maxActiveTasks: 100_000 }, (d) => {
    for (let n = 0; n < ${tasks}; n++) d.operator("t" + n, new TimeDeltaSensor({ delta: s * 1000 }));
  }),
  dag("operators_" + s, { maxActiveTasks: 100_000 }, (d) => {
    for (let n = 0; n < ${tasks}; n++) d.operator("t" + n, new Wait({ ms: s * 1000 }));
  }),
]);
`;
}

/** The same, in workers that stay occupied. "warm_up" gets a process for each, with the code loaded. */
export function pokingFile(seconds: readonly number[], tasks: number): string {
  return `import { dag, TimeDeltaSensor } from "tradewind";

const poke = (id: string, s: number, tasks: number) =>
  dag(id, { maxActiveTasks: 100_000 }, (d) => {
    for (let n = 0; n < tasks; n++)
      d.operator("t" + n, new TimeDeltaSensor({ delta: s * 1000, mode: "poke", interval: 100 }));
  });

export const warmUp = poke("warm_up", 5, ${tasks * seconds.length});
export default ${JSON.stringify(seconds)}.map((s) => poke("poke_" + s, s, ${tasks}));
`;
}

/** Tasks with long waits, each on its own trigger: started without a worker ("begun_…"), or by one ("worked_…"). */
export function longFile(size: number): string {
  return `import { dag, Operator, type TaskContext, TimeDeltaTrigger } from "tradewind";

const HOURS = 10 * 3_600_000;

class Worked extends Operator<{ n: number }, { firedAt: null; resumedAt: number }> {
  execute() {
    return this.defer({ trigger: new TimeDeltaTrigger({ delta: HOURS }), method: "over" });
  }
  over(_ctx: TaskContext) {
    return { firedAt: null, resumedAt: Date.now() };
  }
}

class Begun extends Worked {
  startFrom() {
    return this.execute();
  }
}

export const begun = dag("begun_${size}", { maxActiveTasks: 100_000 }, (d) => {
  for (let n = 0; n < ${size}; n++) d.operator("t" + n, new Begun({ n }));
});

export const worked = dag("worked_${size}", { maxActiveTasks: 100_000 }, (d) => {
  for (let n = 0; n < ${size}; n++) d.operator("t" + n, new Worked({ n }));
});
`;
}

/**
 * Triggers that poll every second, each with its own arguments. They poll whether the benchmark, at the other end of a
 * socket, has allowed another one to fire: the next one that polls does.
 */
export function hotFile(tasks: number, socket: string): string {
  return `import { connect } from "node:net";
import { dag, Operator, PollTrigger, type TaskContext } from "tradewind";

/** Of the process in which the triggers run: there is one connection, and one timer that looks how late it is. */
class Control {
  #allowed = 0;
  #late: number[] = [];

  constructor() {
    const socket = connect(${JSON.stringify(socket)});
    socket.setEncoding("utf8").on("data", (text) => {
      for (const word of text.toString().split("\\n")) {
        if (word === "fire") this.#allowed++;
        else if (word === "reset") this.#late = [];
        else if (word === "lag") socket.write(JSON.stringify(this.#late) + "\\n");
      }
    });
    let due = performance.now() + 10;
    setInterval(() => {
      const now = performance.now();
      this.#late.push(Math.max(0, now - due));
      due = now + 10;
    }, 10);
  }

  take(): { firedAt: number } | undefined {
    if (this.#allowed === 0) return undefined;
    this.#allowed--;
    return { firedAt: Date.now() };
  }
}

let control: Control | undefined;

class Hot extends PollTrigger<{ run: string; n: number }, { firedAt: number }> {
  static id = "bench.hot";
  static interval = "1s";
  #event: { firedAt: number } | undefined;
  /** Only once: it may be polled again before it is stopped. */
  poll() {
    if (this.#event !== undefined) return undefined;
    control ??= new Control();
    this.#event = control.take();
    return this.#event;
  }
}

class Resume extends Operator<{ n: number }, { firedAt: number; resumedAt: number }> {
  execute(ctx: TaskContext) {
    return this.defer({ trigger: new Hot({ run: ctx.run.id, n: this.args.n }), method: "over" });
  }
  over(_ctx: TaskContext, event: { firedAt: number }) {
    return { ...event, resumedAt: Date.now() };
  }
}

export default dag("hot", { maxActiveTasks: 100_000 }, (d) => {
  for (let n = 0; n < ${tasks}; n++) d.operator("t" + n, new Resume({ n }));
});
`;
}

/** All wait for one answer of one server. */
export function sharedFile(tasks: number, url: string): string {
  return `import { dag, HttpSensor } from "tradewind";

export default dag("shared", { maxActiveTasks: 100_000 }, (d) => {
  for (let n = 0; n < ${tasks}; n++) d.operator("t" + n, new HttpSensor({ url: ${JSON.stringify(url)}, interval: "1s" }));
});
`;
}

/** The DAG of a million waits, and a DAG whose two triggers are due at once: a timed one, and one that has to run. */
export function coldFile(): string {
  return `import { dag, TimeDeltaSensor, Trigger } from "tradewind";

class Cold extends Trigger<{ n: number; at: number }, number> {
  static id = "bench.cold";
  override wakeAt() {
    return new Date(this.args.at);
  }
  async *run() {
    yield this.args.n;
  }
}

export const many = dag("many", { maxActiveRuns: 1000 }, (d) => {
  d.trigger("t", new Cold({ n: 0, at: 0 }));
});

export const due = dag("due", { maxActiveRuns: 1000 }, (d) => {
  d.operator("timed", new TimeDeltaSensor({ delta: 0 }));
  d.trigger("run", new Cold({ n: 1, at: 0 }));
});
`;
}
