/** The effects of start, restart and stop on a task, state by state, and the end of a signal-driven run. */
import type { DagManifest, SignalCondition, SignalRule, TaskManifest } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import { rowOf } from "../../../test/reference/instance-row.ts";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { startsAfter } from "../../../test/reference/stored-starts.ts";
import { compileGraph } from "../graph/graph.ts";
import { Drive, type StoredDrive } from "../signal/drive.ts";
import { RuleSet } from "../signal/signal-rules.ts";
import type { StoredStart } from "../signal/waiting-starts.ts";
import { attemptEnd } from "./attempt-end.ts";
import type { AttemptOutcome } from "./attempt-outcome.ts";
import type { Cancel, Command } from "./commands.ts";
import type { Instance, InstanceRow, Wait } from "./instance.ts";
import { RunModel } from "./run.ts";

const WAIT: Wait = { timeoutAt: null, onTimeout: "fail", keepsSlot: true };

const signal = (key: string): SignalCondition => {
  return { kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false };
};
const on = (action: SignalRule["action"], when: string | SignalCondition, once = false): SignalRule => {
  return { action, when: typeof when === "string" ? signal(when) : when, once };
};
const after = (taskId: string): SignalCondition => ({ kind: "task", taskId });
const task = (id: string, facts: Partial<TaskManifest> = {}) => taskManifest(id, facts);
const streaming = (id: string, facts: Partial<TaskManifest> = {}) =>
  task(id, { lifetime: "streaming", retries: 1_000_000_000, ...facts });

/** A run with the rows that a database would store, and shortcuts to drive it. */
class Run {
  readonly #manifest: DagManifest;
  readonly #rules: RuleSet;
  readonly #rows = new Map<string, InstanceRow>();
  readonly cancels: Cancel[] = [];
  model: RunModel;
  #drive: StoredDrive = {};
  #starts: readonly StoredStart[] = [];
  #now = 1_000;
  #attempts = 0;
  #heard = 0;

  constructor(tasks: TaskManifest[], facts: Partial<DagManifest> = {}) {
    this.#manifest = dagManifest(tasks, facts);
    this.#rules = new RuleSet(this.#manifest);
    for (const { retries, taskId } of tasks) {
      const fresh = { mapIndex: -1, state: "pending", tryNumber: 0, maxTries: retries } as const;
      this.#rows.set(taskId, { taskId, ...fresh, attempt: null, retryAt: null, infraLosses: 0 });
    }
    this.model = this.load();
  }

  /** As loaded by the next owner. */
  load(): RunModel {
    const run = { dagId: "dag", runId: "run", conf: {} };
    const stored = JSON.parse(JSON.stringify(this.#drive)) as StoredDrive;
    const drive = new Drive({
      ...{ manifest: this.#manifest, rules: this.#rules, run, startedAt: 1_000 },
      ...{ stored, starts: this.#starts },
    });
    this.model = RunModel.load(compileGraph(this.#manifest), [...this.#rows.values()], { drive });
    this.model.start(this.#now);
    return this.model;
  }

  /** Edits a row without the model, as a manual edit does. */
  edit(id: string, facts: Partial<InstanceRow>): this {
    this.turn();
    this.#rows.set(id, { ...this.#rows.get(id)!, ...facts });
    this.load();
    return this;
  }

  get states() {
    return Object.fromEntries([...this.model.instances()].map(({ node, state }) => [node.id, state]));
  }
  get verdict() {
    return this.model.verdict().state;
  }
  starts(id: string) {
    return this.model.drive!.starts(id);
  }
  tries(id: string) {
    return this.model.get(id)!.tryNumber;
  }

  /** One turn of the owner: finished tasks start again, then everything is stored. */
  turn(): this {
    this.model.beginAgain(this.#now, () => {});
    for (const { instance } of this.model.drainChanges()) {
      const { node, startedAt, wait } = instance;
      this.#rows.set(node.id, { ...rowOf(instance), startedAt, wait });
    }
    this.#drive = this.model.drive!.drainState() ?? this.#drive;
    this.#starts = startsAfter(this.#starts, this.model.drive!.drainStarts());
    this.cancels.push(...this.model.drainCancels());
    return this;
  }
  hear(...keys: string[]): this {
    for (const key of keys) {
      const heard = { namespace: "default", key, value: null, version: ++this.#heard, from: null } as const;
      this.model.apply({ type: "heard", heard: { kind: "signal", ...heard } }, ++this.#now);
    }
    return this;
  }
  order(taskId: string, action: Command["action"]): this {
    this.model.apply({ type: "ordered", taskId, action, reason: "Ann" }, ++this.#now);
    return this;
  }
  close(): this {
    this.model.apply({ type: "closed", reason: "Ann" }, ++this.#now);
    return this;
  }
  #of(taskId: string) {
    return { taskId, mapIndex: -1, attempt: this.model.get(taskId)!.attempt ?? "", at: ++this.#now };
  }
  queue(id: string): this {
    this.model.apply({ ...this.#of(id), type: "queued", attempt: `attempt ${++this.#attempts}` }, this.#now);
    return this;
  }
  begin(id: string): this {
    this.queue(id).model.apply({ type: "started", ...this.#of(id) }, this.#now);
    return this;
  }
  /** As the owner applies a report of an executor. */
  end(id: string, outcome: AttemptOutcome): this {
    const terms = { at: ++this.#now, run: { dagId: "dag", runId: "run" } };
    this.model.apply(attemptEnd(this.model, this.model.get(id)!, outcome, terms), this.#now);
    return this;
  }
  succeed(id: string): this {
    return this.end(id, { kind: "success", output: null, skip: [] });
  }
  fail(id: string, retry = false): this {
    return this.end(id, {
      kind: "failed",
      retry,
      error: { name: "Error", message: "boom", stack: null, code: null },
    });
  }
  lose(id: string): this {
    return this.end(id, { kind: "lost", reason: "gone" });
  }
  defer(id: string): this {
    this.model.apply({ type: "deferred", ...this.#of(id), wait: WAIT }, this.#now);
    return this;
  }
  wake(id: string): this {
    this.model.apply({ type: "retryDue", taskId: id, mapIndex: -1 }, ++this.#now);
    return this;
  }
  /** Runs the task to its end as often as it is scheduled. Returns the number of times. */
  work(id: string): number {
    let runs = 0;
    for (; this.states[id] === "scheduled"; runs++) this.begin(id).turn().succeed(id).turn().turn();
    return runs;
  }
}

describe("start", () => {
  test("runs the task once per signal, at any time of arrival", () => {
    const run = new Run([task("t", { rules: [on("start", "a")] })]);
    expect(run.states).toEqual({ t: "pending" });
    run.hear("a", "a").turn();
    expect(run.states).toEqual({ t: "scheduled" });
    run.hear("a").begin("t").hear("a").turn();
    expect(run.starts("t")).toBe(3);
    run.succeed("t").hear("a").turn().turn();
    expect([run.states.t, run.starts("t")]).toEqual(["scheduled", 3]);
    expect(run.work("t")).toBe(4);
    expect(run.tries("t")).toBe(5);
    expect(run.verdict).toBe("running");
  });

  test("repeats a task with downstream tasks only after its end is stored", () => {
    const run = new Run([task("t", { rules: [on("start", "a")] }), task("after", { upstream: ["t"] })]);
    run.hear("a", "a").turn().begin("t").turn().succeed("t");
    expect(run.model.beginAgain(5_000, () => {})).toBe(false);
    expect(run.states).toEqual({ t: "success", after: "scheduled" });
    expect(run.begin("after").turn().states).toEqual({ t: "success", after: "running" });
    expect(run.turn().states).toEqual({ t: "scheduled", after: "running" });
  });

  test("repeats a task without downstream tasks in the turn of its end, and archives the end", () => {
    const run = new Run([task("t", { rules: [on("start", "a")] })]);
    run.hear("a", "a").turn().begin("t").turn().succeed("t");
    const archived: unknown[] = [];
    const archive = ({ attempt, dirty, state }: Instance) => archived.push([state, attempt, dirty]);
    expect(run.model.beginAgain(5_000, archive)).toBe(true);
    expect(archived).toEqual([["success", "attempt 1", true]]);
    expect(run.turn().states.t).toBe("scheduled");
    expect(run.load().get("t")).toMatchObject({ state: "scheduled", tryNumber: 2, attempt: null });
  });

  test("repeats a task without a stored attempt only after its end is stored", () => {
    const run = new Run([task("t", { rules: [on("start", "a")] })]);
    run.hear("a").turn().order("t", "stop");
    expect(run.states.t).toBe("skipped");
    run.order("t", "start");
    expect(run.turn().states.t).toBe("skipped");
    expect(run.turn().states.t).toBe("scheduled");
  });

  test("waits for upstream tasks, and each start evaluates their states again", () => {
    const run = new Run([task("up"), task("t", { upstream: ["up"], rules: [on("start", "a")] })]);
    run.turn().begin("up").hear("a", "a");
    expect(run.states.t).toBe("pending");
    run.fail("up").turn().turn().turn();
    expect([run.states.t, run.starts("t")]).toEqual(["upstream_failed", 0]);
    run.order("up", "start").turn().begin("up").succeed("up").turn();
    expect(run.states.t).toBe("upstream_failed");
    run.hear("a").turn().turn();
    expect(run.states.t).toBe("scheduled");
  });

  test("counts a start that an upstream failure ended as a try: the cleared task needs no other start", () => {
    const run = new Run([task("up"), task("t", { upstream: ["up"], rules: [on("start", "a")] })]);
    run.turn().begin("up").hear("a").fail("up").turn();
    expect([run.states.t, run.tries("t"), run.starts("t")]).toEqual(["upstream_failed", 1, 0]);
    run.edit("up", { state: "pending", attempt: null }).edit("t", { state: "pending" });
    run.turn().begin("up").succeed("up").turn();
    expect(run.states.t).toBe("scheduled");
    expect(run.model.drive!.startSignals("t")).toEqual([1]);
  });

  test("counts a start that ended with its run as a try, but not a start dropped by a closed run", () => {
    const tasks = [task("up"), task("t", { upstream: ["up"], rules: [on("start", "a")] })];
    const halted = new Run(tasks).turn().begin("up").hear("a").turn();
    halted.model.apply({ type: "halted", at: 2_000, reason: "the run timed out", active: "failed" }, 2_000);
    expect([halted.states.t, halted.tries("t"), halted.starts("t")]).toEqual(["skipped", 1, 0]);
    const closed = new Run(tasks).turn().begin("up").hear("a").close();
    expect([closed.states.t, closed.tries("t"), closed.starts("t")]).toEqual(["skipped", 0, 0]);
  });

  test("skips a streaming task that waits for its upstream with a start when the run is closed", () => {
    const run = new Run([task("up"), streaming("t", { upstream: ["up"], rules: [on("start", "a")] })]);
    run.turn().begin("up").hear("a").fail("up").turn();
    run.edit("up", { state: "pending", attempt: null }).edit("t", { state: "pending" });
    expect(run.turn().close().states.t).toBe("skipped");
  });

  test("repeats finished tasks upstream first, in any order of their starts", () => {
    const run = new Run([task("up"), task("t", { upstream: ["up"] })]);
    run.turn().begin("up").succeed("up").turn().begin("t").turn();
    run.order("t", "start").succeed("t").order("up", "start").turn();
    // The end of "t" is not stored yet: "up" waits for it, as it does after a reload.
    expect(run.states).toEqual({ up: "success", t: "scheduled" });
    expect(run.turn().states).toEqual({ up: "scheduled", t: "pending" });
  });

  test("evaluates a task that waits for a start again when its upstream starts again, also after a reload", () => {
    const run = new Run([
      task("up", { rules: [on("start", "a")] }),
      task("t", { upstream: ["up"], rules: [on("start", "b")] }),
    ]);
    run.hear("a").turn();
    run.work("up");
    expect(run.states.t).toBe("pending");
    run.hear("a").turn().begin("up").turn().fail("up").turn();
    expect(run.states).toEqual({ up: "failed", t: "upstream_failed" });
  });

  test("consumes no start for a retry that has to wait for its upstream again", () => {
    const rules = [on("start", "a")];
    const run = new Run([task("up", { rules }), task("t", { upstream: ["up"], retries: 1, rules })]);
    run.hear("a").turn().begin("up").turn().succeed("up").turn().begin("t").turn();
    run.hear("a", "a").turn().turn();
    expect([run.states.up, run.starts("t")]).toEqual(["scheduled", 2]);
    run.fail("t", true).turn().wake("t");
    expect(run.states.t).toBe("pending");
    expect(run.work("up")).toBe(2);
    expect(run.work("t")).toBe(3);
  });

  test("consumes no start for a task that was cleared manually", () => {
    const run = new Run([task("t", { rules: [on("start", "a")] })]);
    run.hear("a", "a", "a").turn().begin("t").turn();
    run.edit("t", { state: "restarting" });
    run.lose("t").turn();
    expect(run.starts("t")).toBe(2);
    expect(run.work("t")).toBe(3);
  });

  test("repeats the downstream tasks after it", () => {
    const run = new Run([
      task("t", { rules: [on("start", "a")] }),
      task("d", { upstream: ["t"] }),
      task("e", { upstream: ["d"] }),
    ]);
    run.hear("a").turn();
    run.work("t");
    run.work("d");
    run.work("e");
    run.hear("a").turn();
    expect(run.states).toEqual({ t: "scheduled", d: "pending", e: "pending" });
    run.begin("t").turn().succeed("t").turn();
    expect(run.states).toEqual({ t: "success", d: "scheduled", e: "pending" });
    // Not started yet: it waits for the new end.
    run.hear("a").turn();
    expect(run.states).toEqual({ t: "scheduled", d: "pending", e: "pending" });
    expect(run.tries("d")).toBe(1);
    run.work("t");
    run.begin("d").turn().hear("a").turn().turn();
    expect(run.states).toEqual({ t: "scheduled", d: "running", e: "pending" });
    run.work("t");
    run.succeed("d").turn().turn();
    expect(run.states).toEqual({ t: "success", d: "scheduled", e: "pending" });
    expect(run.work("d")).toBe(1);
    expect(run.work("e")).toBe(1);
  });

  test("evaluates a task held by earlier runs again when its gate opens", () => {
    const run = new Run([
      task("t", { rules: [on("start", "a")] }),
      task("d", { upstream: ["t"], dependsOnPast: true }),
    ]);
    run.hear("a").turn();
    run.work("t");
    expect(run.model.drainGated().map(({ node }) => node.id)).toEqual(["d"]);
    run.hear("a").turn().begin("t").turn();
    run.model.apply({ type: "gateOpened", taskId: "d", mapIndex: -1 }, 9_000);
    expect(run.states).toEqual({ t: "running", d: "pending" });
    run.succeed("t");
    expect(run.states).toEqual({ t: "success", d: "scheduled" });
  });
});

describe("restart", () => {
  test("runs the task once more for any number of requests in between", () => {
    const run = new Run([streaming("s", { rules: [on("restart", "r")] })]);
    run.turn().begin("s").turn().hear("r", "r").turn();
    expect([run.states.s, run.starts("s")]).toEqual(["restarting", 0]);
    expect(run.cancels).toMatchObject([{ attempt: "attempt 1", reason: "restarted by r", isFinal: false }]);
    run.hear("r").lose("s").turn();
    expect([run.states.s, run.tries("s"), run.starts("s")]).toEqual(["scheduled", 2, 0]);
    run.load();
    expect(run.turn().states.s).toBe("scheduled");
  });

  test.each([
    ["deferred", (run: Run) => run.defer("s")],
    ["up_for_retry", (run: Run) => run.fail("s", true)],
  ] as const)("repeats a task in %s at once", (state, come) => {
    const run = new Run([streaming("s", { rules: [on("restart", "r")] })]);
    come(run.turn().begin("s").turn());
    expect(run.states.s).toBe(state);
    run.hear("r");
    expect([run.states.s, run.tries("s"), run.starts("s")]).toEqual(["scheduled", 2, 0]);
    expect(run.model.drainReleased()).toHaveLength(state === "deferred" ? 1 : 0);
  });

  test("runs a task that waits for its upstream once for two requests", () => {
    const rules = [on("restart", "r")];
    const run = new Run([task("up", { rules: [on("start", "a")] }), task("t", { upstream: ["up"], rules })]);
    run.hear("a").turn();
    run.work("up");
    run.begin("t").turn().hear("a").turn().begin("up").turn().hear("r").lose("t").turn();
    expect(run.states).toEqual({ up: "running", t: "pending" });
    run.hear("r").turn();
    run.succeed("up").turn();
    expect(run.tries("t")).toBe(2);
  });

  test("after a stop repeats the task instead", () => {
    const run = new Run([streaming("s", { rules: [on("restart", "r"), on("stop", "x")] })]);
    run.turn().begin("s").turn().hear("x").turn().hear("r").turn();
    expect(run.model.stopping(run.model.get("s")!)).toBeNull();
    run.load();
    run.lose("s").turn();
    expect([run.states.s, run.tries("s"), run.starts("s")]).toEqual(["scheduled", 2, 0]);
  });
});

describe("stop", () => {
  test("drops the waiting starts, skips a batch task and ends a streaming task as success", () => {
    const rules = [on("start", "a"), on("stop", "x")];
    const run = new Run([task("t", { rules }), streaming("s", { rules, graceMs: 5 })]);
    run.hear("a", "a", "a").turn().begin("t").begin("s").turn().hear("x").turn();
    expect([run.starts("t"), run.starts("s")]).toEqual([0, 0]);
    expect(run.cancels).toEqual([
      { attempt: "attempt 1", reason: "stopped by x", graceMs: 10_000, isFinal: true },
      { attempt: "attempt 2", reason: "stopped by x", graceMs: 5, isFinal: true },
    ]);
    run.load();
    run.lose("t").fail("s", true).turn();
    expect(run.states).toEqual({ t: "skipped", s: "success" });
    expect(run.model.get("t")?.reason).toBe("stopped by x");
  });

  test("keeps the success of a task that succeeds before it stops", () => {
    const run = new Run([task("t", { rules: [on("stop", "x")] })]);
    run.turn().begin("t").turn().hear("x").turn().succeed("t").turn();
    expect([run.states.t, run.verdict]).toEqual(["success", "success"]);
  });

  test("during a restart prevents the repetition, for any report of the old attempt", () => {
    const rules = [on("restart", "r"), on("stop", "x")];
    const run = new Run([task("t", { rules }), streaming("s", { rules })]);
    run.turn().begin("t").begin("s").turn().hear("r").turn().hear("x").turn();
    run.succeed("t").succeed("s").turn();
    expect(run.states).toEqual({ t: "skipped", s: "success" });
    expect(run.model.stopping(run.model.get("t")!)).toBeNull();
  });

  test("of a streaming task is a success that rules receive, whether the task was killed or ended by itself", () => {
    for (const end of ["lose", "succeed"] as const) {
      const run = new Run([
        streaming("s", { rules: [on("stop", "x")] }),
        task("t", { rules: [on("start", after("s"))] }),
      ]);
      run.turn().begin("s").turn().hear("x").turn()[end]("s").turn();
      expect(run.states).toEqual({ s: "success", t: "scheduled" });
    }
  });

  test("does not end an attempt again that its run has ended", () => {
    const run = new Run([task("t", { rules: [on("stop", "x")] }), task("down", { role: "teardown" })]);
    run.turn().begin("t").turn().hear("x").turn();
    run.model.apply({ type: "halted", at: 9_000, reason: "timed out", active: "failed" }, 9_000);
    run.end("t", { kind: "cancelled" });
    expect(run.model.get("t")).toMatchObject({ state: "failed", reason: "timed out" });
  });

  test("is dropped with an attempt that was ended manually", () => {
    const run = new Run([task("t", { rules: [on("start", "a"), on("stop", "x")] })]);
    run.hear("a").turn().begin("t").turn().hear("x");
    run.edit("t", { state: "success", attempt: null });
    run.hear("a").turn().turn();
    run.begin("t");
    expect(run.model.stopping(run.model.get("t")!)).toBeNull();
    run.fail("t");
    expect(run.states.t).toBe("failed");
  });
});

describe("the end", () => {
  test("skips tasks that wait for a start and ends the run when nothing can start them", () => {
    const run = new Run([
      task("up"),
      task("t", { rules: [on("start", "a", true)] }),
      task("n", { upstream: ["t"] }),
    ]);
    run.turn();
    run.work("up");
    expect(run.verdict).toBe("running");
    run.hear("a");
    expect(run.work("t")).toBe(1);
    run.work("n");
    expect(run.verdict).toBe("success");
  });

  test("skips a task whose start was dropped after the last rule fired", () => {
    const run = new Run([task("up"), task("t", { upstream: ["up"], rules: [on("start", "a", true)] })]);
    run.turn().hear("a").turn().begin("up").turn();
    run.order("t", "stop").turn();
    run.succeed("up").turn();
    expect(run.states).toEqual({ up: "success", t: "skipped" });
    expect(run.verdict).toBe("success");
  });

  test("follows its batch tasks, also when the last event is a dropped start", () => {
    const rules = [on("start", "a"), on("stop", "x")];
    const run = new Run([streaming("s"), task("t", { rules })], { endWhen: "batchDone" });
    run.turn().begin("s").hear("a", "a").turn().begin("t").turn();
    run.succeed("t").hear("x").turn().turn();
    expect(run.model.drive?.closed).toBe("the end of its batch tasks");
    run.lose("s").turn();
    expect(run.verdict).toBe("success");
  });

  test("closes the run: no streaming task starts, and batch tasks continue", () => {
    const run = new Run([
      task("batch"),
      task("next", { upstream: ["batch"] }),
      streaming("later", { upstream: ["batch"] }),
      task("signalled", { rules: [on("start", "a")] }),
      streaming("s"),
    ]);
    run.turn().begin("batch").begin("s").turn().close().turn();
    expect(run.states).toEqual({
      ...{ batch: "running", next: "pending", later: "skipped", signalled: "skipped", s: "running" },
    });
    run.load();
    run.succeed("batch").lose("s").turn();
    expect(run.states).toMatchObject({ next: "scheduled", s: "success" });
    run.work("next");
    expect(run.verdict).toBe("success");
  });

  test("is not delayed by tasks that are cleared in a closed run", () => {
    const run = new Run([task("b"), task("t", { rules: [on("start", "a")] }), streaming("s")]);
    run.turn().begin("b").begin("s").turn().close().lose("s").turn();
    run.edit("t", { state: "pending" }).edit("s", { state: "pending" });
    run.succeed("b").turn();
    expect(run.states).toEqual({ b: "success", t: "skipped", s: "skipped" });
    expect(run.verdict).toBe("success");
  });

  test("runs a batch task once more that is restarting when the run is closed, and drops its starts", () => {
    const run = new Run([task("t", { rules: [on("start", "a"), on("restart", "r")] })]);
    run.hear("a", "a", "a").turn().begin("t").turn().hear("r").turn().close().lose("t").turn();
    expect(run.work("t")).toBe(1);
    expect(run.verdict).toBe("success");
  });

  test("keeps the repetition of a task whose upstream started again while it ran", () => {
    const run = new Run([task("up", { rules: [on("start", "a")] }), task("t", { upstream: ["up"] })]);
    run.hear("a", "a", "a").turn().begin("up").turn().succeed("up").turn().begin("t").turn();
    expect(run.states).toMatchObject({ up: "scheduled", t: "running" });
    run.close().turn();
    run.succeed("t").turn().begin("up").turn().succeed("up").turn();
    expect(run.states).toMatchObject({ up: "success", t: "scheduled" });
    run.begin("t").turn().succeed("t").turn();
    expect(run.verdict).toBe("success");
  });

  test("ignores signals and start requests in a closed run, but not stop requests", () => {
    const run = new Run([task("t", { rules: [on("start", "a")] }), task("u")]);
    run.hear("a").turn().begin("t").begin("u").turn().close();
    run.hear("a").order("t", "start").order("u", "restart").turn();
    expect([run.states, run.starts("t")]).toEqual([{ t: "running", u: "running" }, 0]);
    run.order("u", "stop").turn().lose("u").succeed("t").turn();
    expect(run.states).toEqual({ t: "success", u: "skipped" });
    expect(run.verdict).toBe("success");
  });

  test("keeps the starts of a task that a branch skips, also after a reload", () => {
    const run = new Run([task("b"), task("t", { upstream: ["b"], rules: [on("start", "a")] })]);
    run.turn().begin("b").hear("a", "a").turn();
    const { attempt } = run.model.get("b")!;
    const key = { taskId: "b", mapIndex: -1, attempt: attempt!, at: 5_000 };
    run.model.apply({ type: "succeeded", ...key, skip: ["t"] }, 5_000);
    expect(run.states.t).toBe("skipped");
    expect(run.model.isPending).toBe(true);
  });
});
