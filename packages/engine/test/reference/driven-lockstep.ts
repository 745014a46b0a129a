/**
 * Drives the engine's run model and the reference of signal-driven runs through the same history, and compares them after
 * every event. The history has commits at any point, transactions that were rolled back, and crashes. After a crash, the
 * model is loaded from the stored rows and receives again the signals after the stored position. A model loaded right after
 * a commit must decide the same as the model that continues.
 */
import assert from "node:assert/strict";
import type { DagManifest } from "@tradewind/sdk/manifest";
import {
  beginAgain,
  type Cause,
  compileGraph,
  Drive,
  type EditableRow,
  type Graph,
  type Instance,
  isImpliedEnd,
  needsStart,
  OCCUPYING,
  RuleSet,
  type RunEvent,
  RunModel,
  type StoredDrive,
  type StoredStart,
} from "../../src/model/index.ts";
import { DrivenDemands } from "./driven-demands.ts";
import { endsOf, interruption } from "./driven-ends.ts";
import { type Action, type DrivenEvent, type DrivenState, type DrivenTask, isEnded } from "./driven-event.ts";
import { DrivenOrder } from "./driven-order.ts";
import { DrivenReference } from "./driven-reference.ts";
import { clearedRow, freshRows, haltedRow, markedRow, rowAfter } from "./driven-rows.ts";
import { startsAfter } from "./stored-starts.ts";

/** Number of steps after which a run that keeps starting itself is closed. */
const PATIENCE = 40;

/** The contents of the database. */
interface Stored {
  readonly rows: ReadonlyMap<string, EditableRow>;
  readonly drive: string;
  readonly starts: readonly StoredStart[];
  /** Number of signals of the log that were processed. */
  readonly position: number;
  readonly reference: DrivenReference;
  readonly demands: DrivenDemands;
}

/** One step of a history; `pick` selects one of the tasks that the step applies to. */
export type Step =
  | { readonly kind: "signal"; readonly key: string }
  | { readonly kind: "order"; readonly pick: number; readonly action: Action }
  | { readonly kind: "attempt"; readonly pick: number; readonly outcome: number }
  /** A manual edit of the stored rows, after which the model is loaded again. Each bit of `picks` selects a task. */
  | { readonly kind: "clear"; readonly picks: number; readonly onlyFailed: boolean }
  | { readonly kind: "mark"; readonly picks: number; readonly as: "success" | "failed" | "skipped" }
  | { readonly kind: "cancel"; readonly as: "success" | "failed" }
  | { readonly kind: PlainStep };

export type PlainStep = "close" | "tick" | "turn" | "commit" | "giveBack" | "crash" | "forge";

export class DrivenLockstep {
  readonly #manifest: DagManifest;
  readonly #graph: Graph;
  readonly #rules: RuleSet;
  readonly #log: string[] = [];
  /** Attempts that received a stop request. */
  readonly #stopRequested = new Set<string>();
  /** The run was idle when it was closed. */
  isClosedInPeace = false;
  #model: RunModel;
  #reference: DrivenReference;
  #position = 0;
  #stored: Stored;
  #now = 1_000;
  #attempts = 0;
  readonly #order: DrivenOrder;
  readonly #causes = new Map<string, (readonly number[])[]>();
  #demands = new DrivenDemands();
  #startedAt = 1_000;
  #isCancelled = false;
  /** Edits of a run that had ended. */
  reopened = 0;
  /** Starts that ran because of an edit, after their task had ended without them. */
  get carriedOut(): number {
    return this.#demands.carriedOut;
  }

  constructor(manifest: DagManifest) {
    this.#manifest = manifest;
    this.#graph = compileGraph(manifest);
    this.#rules = new RuleSet(manifest);
    this.#order = new DrivenOrder(manifest);
    this.#reference = new DrivenReference(manifest);
    this.#stored = {
      rows: freshRows(manifest),
      drive: "{}",
      starts: [],
      position: 0,
      reference: this.#reference.copy(),
      demands: this.#demands.copy(),
    };
    this.#model = this.#load();
    this.#compare("the start");
  }

  get isOver(): boolean {
    return this.#reference.end() !== "running";
  }

  step(step: Step): void {
    this.#now++;
    switch (step.kind) {
      case "signal":
        this.#log.push(step.key);
        this.#listen();
        break;
      case "order": {
        const { taskId } = one(this.#manifest.tasks, step.pick);
        const order = { type: "ordered", taskId, action: step.action, reason: "hand" } as const;
        this.#happen(order, { what: "order", of: taskId, action: step.action });
        break;
      }
      case "close":
        this.#happen({ type: "closed", reason: "hand" }, { what: "close" });
        break;
      case "attempt":
        this.#attempt(step.pick, step.outcome);
        break;
      case "clear":
      case "mark":
        this.#edit(step);
        break;
      case "cancel":
        this.#cancel(step.as);
        break;
      case "tick":
        this.#tick();
        break;
      case "turn":
        this.#turn();
        break;
      case "commit":
        this.#commit();
        break;
      case "giveBack":
        this.#restore();
        break;
      case "crash":
        this.#crash();
        break;
      case "forge":
        this.#forge();
    }
    this.#compare(JSON.stringify(step));
  }

  /** Lets all attempts succeed until the run is idle. */
  rest(): void {
    for (let steps = 0; !this.isOver && !this.#isIdle(); steps++) {
      assert(steps < 1_000, `the run does not become idle: ${JSON.stringify(this.#reference.tasks())}`);
      this.step({ kind: "attempt", pick: steps, outcome: 0 });
      this.step({ kind: "turn" });
    }
  }

  /** Closes a run that would continue indefinitely. */
  toTheEnd(): void {
    for (let steps = 0; !this.isOver; steps++) {
      assert(steps < 1_000, `the run does not end: ${JSON.stringify(this.#reference.tasks())}`);
      this.isClosedInPeace ||= this.#isIdle();
      if (this.#isIdle() || steps === PATIENCE) this.step({ kind: "close" });
      this.step({ kind: "attempt", pick: steps, outcome: 0 });
      this.step({ kind: "turn" });
    }
    if (this.#isCancelled) return;
    assert.equal(this.#model.isPending, false);
    if (this.#reference.end() === "success")
      assert.deepEqual(this.#demands.unmet(this.#reference), [], "unmet demands of a successful run");
  }

  /** By task: the signals that started each of its tries. */
  causes(): (readonly number[])[][] {
    return [...this.#model.instances()].map(({ node }) => this.#causes.get(node.id) ?? []);
  }

  tries(): number[] {
    return [...this.#model.instances()].map(({ tryNumber }) => tryNumber);
  }

  #isIdle(): boolean {
    return this.#movable().length === 0 && !this.#reference.isPending;
  }

  /** Passes the signals after the current position to both sides; after a crash, some of them again. */
  #listen(): void {
    while (this.#position < this.#log.length) {
      const key = this.#log[this.#position++]!;
      const heard = {
        kind: "signal",
        namespace: "default",
        key,
        value: null,
        version: this.#position,
        from: null,
      } as const;
      this.#happen({ type: "heard", heard }, { what: "signal", key, version: this.#position });
    }
  }

  #record(): void {
    this.#order.record(this.#reference, this.#now);
    this.#demands.record(this.#reference);
    for (const { id, state, tries } of this.#movable()) {
      const causes = this.#causes.get(id) ?? [];
      this.#causes.set(id, causes);
      if (state === "scheduled") causes[tries - 1] = this.#model.drive!.startSignals(id);
    }
  }

  #happen(event: RunEvent, expected: DrivenEvent): void {
    this.#model.apply(event, this.#now);
    this.#reference.happen(expected);
    this.#record();
  }

  /** One turn of the owner's loop: tasks begin again, then the changes are committed. */
  #turn(): void {
    const archived = new Set<string>();
    this.#model.beginAgain(this.#now, ({ node, state, dirty }) => {
      assert(isEnded(state), `${node.id} begins again from ${state}`);
      assert(!dirty || node.downstream.length === 0, `the end of ${node.id} was never stored`);
      assert(!archived.has(node.id), `${node.id} begins twice at once`);
      archived.add(node.id);
    });
    this.#reference.happen({ what: "again" });
    this.#record();
    this.#commit();
  }

  #tick(): void {
    const at = this.#model.drive!.nextTickAt();
    if (at === null) return;
    this.#now = Math.max(this.#now, at);
    const due = this.#manifest.tasks.filter(({ taskId }) => {
      const tickAt = this.#model.drive!.tickAt(taskId);
      return tickAt !== null && tickAt <= this.#now;
    });
    // Due retries come before ticks.
    const waking = this.#reference.tasks().filter(({ state }) => state.startsWith("up_for_"));
    this.#model.fireRetries(this.#now);
    for (const { id } of waking) {
      if (this.#model.get(id)?.state !== this.#reference.task(id).state)
        this.#reference.happen({ what: "wake", of: id });
    }
    for (const { taskId } of due) this.#reference.happen({ what: "tick", of: taskId });
    this.#record();
  }

  #movable(): DrivenTask[] {
    return this.#reference.tasks().filter(({ state }) => state !== "pending" && !isEnded(state));
  }

  #attempt(pick: number, outcome: number): void {
    const movable = this.#movable();
    if (movable.length === 0) return;
    const { id, state } = one(movable, pick);
    const { attempt } = this.#model.get(id)!;
    const key = { taskId: id, mapIndex: -1, attempt: attempt ?? "", at: this.#now };
    switch (state) {
      case "scheduled":
        this.#happen(
          { type: "queued", taskId: id, mapIndex: -1, attempt: `attempt ${++this.#attempts}` },
          { what: "queue", of: id },
        );
        // An attempt starts only after it is committed as queued.
        this.#commit();
        return;
      case "up_for_retry":
      case "up_for_reschedule":
        this.#happen({ type: "retryDue", taskId: id, mapIndex: -1 }, { what: "wake", of: id });
        return;
      case "deferred":
        if (outcome % 4 === 0) this.#happen({ type: "resumed", ...key }, { what: "resume", of: id });
        else this.#end(id, outcome);
        return;
      case "queued":
        if (outcome % 2 === 0) {
          this.#happen({ type: "started", ...key }, { what: "start", of: id });
          return;
        }
        this.#end(id, outcome);
        return;
      default:
        this.#end(id, outcome);
    }
  }

  #end(id: string, outcome: number): void {
    const { attempt, state } = this.#model.get(id)!;
    const key = { taskId: id, mapIndex: -1, attempt: attempt ?? "", at: this.#now };
    const [event, expected] = one(endsOf(key, state === "deferred"), Math.floor(outcome / 2));
    const interrupted = interruption(this.#reference.task(id), expected.what);
    if (interrupted === null) {
      this.#happen(event, expected);
      return;
    }
    assert.equal(
      this.#model.apply(event, this.#now),
      false,
      `${event.type} of ${id}, which was ${interrupted}`,
    );
    this.#happen({ type: interrupted, ...key }, expected);
  }

  /** Reports of superseded attempts change nothing. */
  #forge(): void {
    for (const { attempt, node } of [...this.#model.instances()]) {
      const current = { taskId: node.id, mapIndex: -1, attempt: attempt ?? "none", at: this.#now };
      for (const type of ["stopped", "restarted"] as const)
        if (interruption(this.#reference.task(node.id), "fail") !== type)
          assert.equal(this.#model.apply({ type, ...current }, this.#now), false, `${type} of ${node.id}`);
      const key = { ...current, attempt: "superseded" };
      assert.equal(this.#model.apply({ type: "succeeded", ...key, skip: [] }, this.#now), false);
      assert.equal(this.#model.apply({ type: "started", ...key }, this.#now), false);
    }
  }

  #restore(): void {
    const changes = this.#model.drainChanges();
    this.#model.drive!.drainState();
    this.#model.drive!.drainStarts();
    this.#model.restoreChanges(changes);
  }

  #commit(): void {
    const changes = this.#model.drainChanges();
    const state = this.#model.drive!.drainState();
    this.#reference.happen({ what: "store" });
    const rows = new Map(this.#stored.rows);
    for (const change of changes) rows.set(change.instance.node.id, rowAfter(change));
    this.#stored = {
      rows,
      drive: state === null ? this.#stored.drive : JSON.stringify(state),
      starts: startsAfter(this.#stored.starts, this.#model.drive!.drainStarts()),
      position: this.#position,
      reference: this.#reference.copy(),
      demands: this.#demands.copy(),
    };
    for (const { attempt } of this.#model.drainCancels()) this.#stopRequested.add(attempt);
    for (const instance of this.#model.instances()) this.#checkStopRequests(instance);
    this.#checkReload();
  }

  /** Exactly the attempts that must stop have received a stop request. */
  #checkStopRequests(instance: Instance): void {
    const { attempt, node, state } = instance;
    if (attempt === null || !OCCUPYING.has(state)) return;
    const isToEnd = state === "restarting" || this.#model.stopping(instance) !== null;
    assert.equal(this.#stopRequested.has(attempt), isToEnd, `stop request of ${node.id} in state ${state}`);
  }

  /** A model loaded right after a commit has nothing to decide. */
  #checkReload(): void {
    const other = this.#load();
    const describe = (model: RunModel) => {
      const { drive } = model;
      return [...model.instances()].map(({ node: { id }, state, tryNumber, maxTries, attempt }) => ({
        ...{ id, state, tryNumber, attempt, limit: limitOf(state, maxTries) },
        ...{ starts: drive!.starts(id), stopping: drive!.stopping(id), tickAt: drive!.tickAt(id) },
        startSignals: drive!.startSignals(id),
      }));
    };
    assert.deepEqual(describe(other), describe(this.#model));
    assert.deepEqual(other.drive!.report(), this.#model.drive!.report());
    assert.deepEqual(other.drainChanges(), []);
    assert.equal(other.isPending, this.#model.isPending);
    assert.deepEqual(other.verdict(), this.#model.verdict());
  }

  #crash(): void {
    this.#reference = this.#stored.reference.copy();
    this.#demands = this.#stored.demands.copy();
    this.#position = this.#stored.position;
    this.#model = this.#load();
    // The next owner repeats the stop requests.
    for (const instance of this.#model.instances()) {
      const isToEnd = instance.state === "restarting" || this.#model.stopping(instance) !== null;
      if (isToEnd && instance.attempt !== null) this.#stopRequested.add(instance.attempt);
    }
    this.#order.forget(this.#reference);
    this.#record();
    this.#listen();
  }

  #edit(step: Extract<Step, { kind: "clear" | "mark" }>): void {
    if (!this.#isCancelled) this.#commit();
    const before = [...this.#stored.rows.values()];
    const named = before.filter((_, n) => (step.picks >> n) % 2 === 1);
    const mark =
      step.kind === "mark" ? named.filter((row) => row.state !== step.as || isImpliedEnd(row)) : [];
    const clear = step.kind === "clear" ? (step.onlyFailed ? before : named).filter(isClearable(step)) : [];
    if (mark.length + clear.length === 0) return;
    if (this.isOver) this.#reopen();
    const as = step.kind === "mark" ? step.as : "success";
    const rows = before.map((row) => (mark.includes(row) ? markedRow(row, as, this.#isStarted(row)) : row));
    const run = { graph: this.#graph, rows, skips: [], expansions: [], groups: [] };
    const again = beginAgain(run, clear, { wholeGroups: false });
    const retries = new Map(this.#manifest.tasks.map((task) => [task.taskId, task.retries]));
    const after = rows.map((row) => {
      return again.includes(row) ? clearedRow(row, retries.get(row.taskId)!) : row;
    });
    this.#reference.happen({ what: "edit", clear: idsOf(clear), mark: idsOf(mark), as });
    this.#demands.forget(idsOf(mark));
    // An edit may close the run, which drops pending starts.
    if (!this.#reference.isClosed)
      assert.deepEqual(this.#demands.unmet(this.#reference), [], "unmet demands of an edited run");
    this.#endStarts(mark);
    const drive = JSON.parse(this.#stored.drive) as StoredDrive & Editable;
    for (const { taskId } of again) delete drive.tasks?.[taskId]?.stopping;
    this.#rewrite(after, JSON.stringify(drive));
    this.#crash();
  }

  /** A user ends the run; its model is discarded. */
  #cancel(as: "success" | "failed"): void {
    if (this.isOver) return;
    this.#commit();
    const rows = [...this.#stored.rows.values()].map((row) => haltedRow(row, as, this.#isStarted(row)));
    this.#demands.cancel(this.#reference, as);
    this.#reference.happen({ what: "cancel", as });
    this.#record();
    this.#rewrite(rows, "{}");
    this.#isCancelled = true;
  }

  /** Starts and rule states were removed at the end of the run; only new signals count. */
  #reopen(): void {
    this.reopened++;
    this.#isCancelled = false;
    this.#startedAt = this.#now;
    this.#position = this.#log.length;
    this.#stored = { ...this.#stored, drive: "{}", starts: [], position: this.#position };
  }

  /** The task needs a start, and has a pending one. */
  #isStarted({ taskId }: EditableRow): boolean {
    const task = this.#manifest.tasks.find((each) => each.taskId === taskId)!;
    if (!needsStart(task)) return false;
    return this.#stored.starts.some((start) => start.taskId === taskId);
  }

  /** Removes the oldest pending start of each task that has not begun, and keeps its cause. */
  #endStarts(rows: readonly EditableRow[]): void {
    const drive = JSON.parse(this.#stored.drive) as StoredDrive & Editable;
    for (const { state, taskId, tryNumber } of rows) {
      const first = this.#stored.starts.find((start) => start.taskId === taskId);
      if (!first || state !== "pending" || tryNumber > 0) continue;
      if (first.cause !== null)
        drive.tasks = { ...drive.tasks, [taskId]: { ...drive.tasks?.[taskId], cause: first.cause } };
      this.#stored = { ...this.#stored, starts: this.#stored.starts.filter((start) => start !== first) };
    }
    this.#stored = { ...this.#stored, drive: JSON.stringify(drive) };
  }

  #rewrite(rows: readonly EditableRow[], drive: string): void {
    const byId = new Map(rows.map((row) => [row.taskId, row]));
    const [reference, demands] = [this.#reference.copy(), this.#demands.copy()];
    this.#stored = { ...this.#stored, rows: byId, drive, reference, demands };
  }

  #load(): RunModel {
    const drive = new Drive({
      manifest: this.#manifest,
      rules: this.#rules,
      run: { dagId: "dag", runId: "run", conf: {} },
      startedAt: this.#startedAt,
      stored: JSON.parse(this.#stored.drive) as StoredDrive,
      starts: this.#stored.starts,
    });
    const model = RunModel.load(this.#graph, [...this.#stored.rows.values()], { drive });
    model.start(this.#now);
    return model;
  }

  #compare(after: string): void {
    if (this.#isCancelled) return;
    const drive = this.#model.drive!;
    const engine = [...this.#model.instances()].map(({ node: { id }, state, tryNumber, maxTries }) => {
      const limit = limitOf(state, maxTries);
      return {
        id,
        state,
        tries: tryNumber,
        limit,
        starts: drive.starts(id),
        startSignals: drive.startSignals(id),
        isStopping: drive.stopping(id) !== null,
      };
    });
    const reference = engine.map(({ id }) => {
      const { cause, isStopping, limit, starts, state, tries } = this.#reference.task(id);
      const startSignals = [...new Set([...cause.restarted, ...cause.started])];
      return {
        ...{
          id,
          state,
          tries,
          limit: limitOf(state, limit),
          starts: starts.length,
          startSignals,
          isStopping,
        },
      };
    });
    assert.deepEqual(engine, reference, `after ${after}`);
    assert.equal(this.#model.verdict().state, this.#reference.end(), `after ${after}`);
    assert.equal(this.#model.drive!.closed !== null, this.#reference.isClosed, `after ${after}`);
    this.#model.drainReady();
    this.#model.drainReleased();
  }

  /** To call at the end of a run in which nothing was stopped. */
  checkOrder(): void {
    this.#order.check(this.#reference);
  }
}

interface Editable {
  tasks?: Record<string, { stopping?: string; cause?: Cause }>;
}

/** A task that has not begun is not cleared by name: it begins anyway. */
function isClearable({ onlyFailed }: { readonly onlyFailed: boolean }): (row: EditableRow) => boolean {
  return ({ state, resumedAttempt }) => {
    if (onlyFailed) return state === "failed" || state === "upstream_failed";
    return state !== "pending" && (state !== "scheduled" || (resumedAttempt ?? null) !== null);
  };
}

function idsOf(rows: readonly EditableRow[]): string[] {
  return rows.map(({ taskId }) => taskId);
}

function one<T>(items: readonly T[], pick: number): T {
  return items[pick % items.length]!;
}

/** A finished task gets a new limit when it begins again. */
function limitOf(state: DrivenState, limit: number): number | null {
  return isEnded(state) ? null : limit;
}
