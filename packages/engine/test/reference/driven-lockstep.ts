/**
 * Drives the engine's run model and the reference of driven runs through the same history, and compares them after every
 * event. The history has commits at any point, transactions that did not happen, and crashes, after which the model is
 * loaded from what it had stored and hears again what it had not stored. A model that is loaded right after a commit has
 * to decide nothing else than the one that goes on.
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

/** A run may start itself again and again: so many steps are enough of it. */
const PATIENCE = 40;

/** What a database would hold. */
interface Stored {
  readonly rows: ReadonlyMap<string, EditableRow>;
  readonly drive: string;
  readonly starts: readonly StoredStart[];
  /** So many signals of the log were heard. */
  readonly position: number;
  readonly reference: DrivenReference;
  readonly demands: DrivenDemands;
}

/** One thing that happens to whatever it can happen to; `pick` chooses among that. */
export type Step =
  | { readonly kind: "signal"; readonly key: string }
  | { readonly kind: "order"; readonly pick: number; readonly action: Action }
  | { readonly kind: "attempt"; readonly pick: number; readonly outcome: number }
  /** By hand, past the model, which is loaded again. Each bit of `picks` stands for a task. */
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
  /** Attempts that were asked to stop. */
  readonly #asked = new Set<string>();
  /** Nothing was under way when it was closed, if it was. */
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
  /** Starts that were carried out by an edit, after their task had ended without them. */
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
    this.#compare("the beginning");
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
        this.#giveBack();
        break;
      case "crash":
        this.#crash();
        break;
      case "forge":
        this.#forge();
    }
    this.#compare(JSON.stringify(step));
  }

  /** Lets everything go well until nothing is left to do. */
  rest(): void {
    for (let steps = 0; !this.isOver && !this.#isIdle(); steps++) {
      assert(steps < 1_000, `the run does not come to rest: ${JSON.stringify(this.#reference.tasks())}`);
      this.step({ kind: "attempt", pick: steps, outcome: 0 });
      this.step({ kind: "turn" });
    }
  }

  /** What goes on forever is closed by hand. */
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
      assert.deepEqual(this.#demands.unmet(this.#reference), [], "the run is a success");
  }

  /** By task, the signals that each of its tries was due to. */
  causes(): (readonly number[])[][] {
    return [...this.#model.instances()].map(({ node }) => this.#causes.get(node.id) ?? []);
  }

  tries(): number[] {
    return [...this.#model.instances()].map(({ tryNumber }) => tryNumber);
  }

  #isIdle(): boolean {
    return this.#movable().length === 0 && !this.#reference.isPending;
  }

  /** What is signalled, heard by both: after a crash some of it once more. */
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

  #note(): void {
    this.#order.note(this.#reference, this.#now);
    this.#demands.note(this.#reference);
    for (const { id, state, tries } of this.#movable()) {
      const causes = this.#causes.get(id) ?? [];
      this.#causes.set(id, causes);
      if (state === "scheduled") causes[tries - 1] = this.#model.drive!.startedBy(id);
    }
  }

  #happen(event: RunEvent, expected: DrivenEvent): void {
    this.#model.apply(event, this.#now);
    this.#reference.happen(expected);
    this.#note();
  }

  /** As a turn of the owner's loop: tasks begin again, then it is stored. */
  #turn(): void {
    const archived = new Set<string>();
    this.#model.beginAgain(this.#now, ({ node, state, dirty }) => {
      assert(isEnded(state), `${node.id} begins again from ${state}`);
      assert(!dirty || node.downstream.length === 0, `the end of ${node.id} was never stored`);
      assert(!archived.has(node.id), `${node.id} begins twice at once`);
      archived.add(node.id);
    });
    this.#reference.happen({ what: "again" });
    this.#note();
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
    // Retries are due as well, and come first.
    const waking = this.#reference.tasks().filter(({ state }) => state.startsWith("up_for_"));
    this.#model.fireRetries(this.#now);
    for (const { id } of waking) {
      if (this.#model.get(id)?.state !== this.#reference.task(id).state)
        this.#reference.happen({ what: "wake", of: id });
    }
    for (const { taskId } of due) this.#reference.happen({ what: "tick", of: taskId });
    this.#note();
  }

  #movable(): DrivenTask[] {
    return this.#reference.tasks().filter(({ state }) => state !== "none" && !isEnded(state));
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
        // Nobody runs it before that is stored.
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

  /** Late and false reports change nothing. */
  #forge(): void {
    for (const { attempt, node } of [...this.#model.instances()]) {
      const current = { taskId: node.id, mapIndex: -1, attempt: attempt ?? "none", at: this.#now };
      for (const type of ["stopped", "restarted"] as const)
        if (interruption(this.#reference.task(node.id), "fail") !== type)
          assert.equal(this.#model.apply({ type, ...current }, this.#now), false, `${type} of ${node.id}`);
      const key = { ...current, attempt: "of old" };
      assert.equal(this.#model.apply({ type: "succeeded", ...key, skip: [] }, this.#now), false);
      assert.equal(this.#model.apply({ type: "started", ...key }, this.#now), false);
    }
  }

  #giveBack(): void {
    const changes = this.#model.takeChanges();
    this.#model.drive!.takeState();
    this.#model.drive!.takeStarts();
    this.#model.giveBack(changes);
  }

  #commit(): void {
    const changes = this.#model.takeChanges();
    const state = this.#model.drive!.takeState();
    this.#reference.happen({ what: "store" });
    const rows = new Map(this.#stored.rows);
    for (const change of changes) rows.set(change.instance.node.id, rowAfter(change));
    this.#stored = {
      rows,
      drive: state === null ? this.#stored.drive : JSON.stringify(state),
      starts: startsAfter(this.#stored.starts, this.#model.drive!.takeStarts()),
      position: this.#position,
      reference: this.#reference.copy(),
      demands: this.#demands.copy(),
    };
    for (const { attempt } of this.#model.takeCancels()) this.#asked.add(attempt);
    for (const instance of this.#model.instances()) this.#checkAsked(instance);
    this.#checkReload();
  }

  /** Whoever is to stop was asked to, and nobody else. */
  #checkAsked(instance: Instance): void {
    const { attempt, node, state } = instance;
    if (attempt === null || !OCCUPYING.has(state)) return;
    const isToEnd = state === "restarting" || this.#model.stopping(instance) !== null;
    assert.equal(this.#asked.has(attempt), isToEnd, `${node.id}, ${state}, was asked to stop`);
  }

  /** Loaded from what was just stored, it finds nothing to decide. */
  #checkReload(): void {
    const other = this.#load();
    const describe = (model: RunModel) => {
      const { drive } = model;
      return [...model.instances()].map(({ node: { id }, state, tryNumber, maxTries, attempt }) => ({
        ...{ id, state, tryNumber, attempt, limit: limitOf(state, maxTries) },
        ...{ starts: drive!.starts(id), stopping: drive!.stopping(id), tickAt: drive!.tickAt(id) },
        startedBy: drive!.startedBy(id),
      }));
    };
    assert.deepEqual(describe(other), describe(this.#model));
    assert.deepEqual(other.drive!.report(), this.#model.drive!.report());
    assert.deepEqual(other.takeChanges(), []);
    assert.equal(other.isPending, this.#model.isPending);
    assert.deepEqual(other.verdict(), this.#model.verdict());
  }

  #crash(): void {
    this.#reference = this.#stored.reference.copy();
    this.#demands = this.#stored.demands.copy();
    this.#position = this.#stored.position;
    this.#model = this.#load();
    // The next owner asks again.
    for (const instance of this.#model.instances()) {
      const isToEnd = instance.state === "restarting" || this.#model.stopping(instance) !== null;
      if (isToEnd && instance.attempt !== null) this.#asked.add(instance.attempt);
    }
    this.#order.forget(this.#reference);
    this.#note();
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
    // An edit may close the run, which forgets starts.
    if (!this.#reference.isClosed)
      assert.deepEqual(this.#demands.unmet(this.#reference), [], "the run was edited");
    this.#endStarts(mark);
    const drive = JSON.parse(this.#stored.drive) as StoredDrive & Editable;
    for (const { taskId } of again) delete drive.tasks?.[taskId]?.stopping;
    this.#rewrite(after, JSON.stringify(drive));
    this.#crash();
  }

  /** By hand: the run has ended, and its model is no more. */
  #cancel(as: "success" | "failed"): void {
    if (this.isOver) return;
    this.#commit();
    const rows = [...this.#stored.rows.values()].map((row) => haltedRow(row, as, this.#isStarted(row)));
    this.#demands.cancel(this.#reference, as);
    this.#reference.happen({ what: "cancel", as });
    this.#note();
    this.#rewrite(rows, "{}");
    this.#isCancelled = true;
  }

  /** What drove the run has gone with its end; it hears from now on. */
  #reopen(): void {
    this.reopened++;
    this.#isCancelled = false;
    this.#startedAt = this.#now;
    this.#position = this.#log.length;
    this.#stored = { ...this.#stored, drive: "{}", starts: [], position: this.#position };
  }

  /** It needs a start, and has one that waits. */
  #isStarted({ taskId }: EditableRow): boolean {
    const task = this.#manifest.tasks.find((each) => each.taskId === taskId)!;
    if (!needsStart(task)) return false;
    return this.#stored.starts.some((start) => start.taskId === taskId);
  }

  /** The oldest of each that has not begun, with its cause. */
  #endStarts(rows: readonly EditableRow[]): void {
    const drive = JSON.parse(this.#stored.drive) as StoredDrive & Editable;
    for (const { state, taskId, tryNumber } of rows) {
      const first = this.#stored.starts.find((start) => start.taskId === taskId);
      if (!first || state !== "none" || tryNumber > 0) continue;
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
        startedBy: drive.startedBy(id),
        isStopping: drive.stopping(id) !== null,
      };
    });
    const reference = engine.map(({ id }) => {
      const { cause, isStopping, limit, starts, state, tries } = this.#reference.task(id);
      const startedBy = [...new Set([...cause.restarted, ...cause.started])];
      return {
        ...{ id, state, tries, limit: limitOf(state, limit), starts: starts.length, startedBy, isStopping },
      };
    });
    assert.deepEqual(engine, reference, `after ${after}`);
    assert.equal(this.#model.verdict().state, this.#reference.end(), `after ${after}`);
    assert.equal(this.#model.drive!.closed !== null, this.#reference.isClosed, `after ${after}`);
    this.#model.takeReady();
    this.#model.takeReleased();
  }

  /** At the end of a run in which nothing was stopped. */
  checkOrder(): void {
    this.#order.check(this.#reference);
  }
}

interface Editable {
  tasks?: Record<string, { stopping?: string; cause?: Cause }>;
}

/** What has not begun is not cleared by name: it begins anyway. */
function isClearable({ onlyFailed }: { readonly onlyFailed: boolean }): (row: EditableRow) => boolean {
  return ({ state, resumedAttempt }) => {
    if (onlyFailed) return state === "failed" || state === "upstream_failed";
    return state !== "none" && (state !== "scheduled" || (resumedAttempt ?? null) !== null);
  };
}

function idsOf(rows: readonly EditableRow[]): string[] {
  return rows.map(({ taskId }) => taskId);
}

function one<T>(items: readonly T[], pick: number): T {
  return items[pick % items.length]!;
}

/** What has finished has another one when it begins again. */
function limitOf(state: DrivenState, limit: number): number | null {
  return isEnded(state) ? null : limit;
}
