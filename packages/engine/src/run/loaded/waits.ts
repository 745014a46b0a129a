/**
 * The waits of a job's runs: those that start without a worker, those whose trigger fired, and those that timed out. Fired
 * triggers are read from the database when there is a reason: a wake-up, a run that was just loaded, or the heartbeat in
 * case a wake-up was lost.
 */
import type { Instance } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import { type FiredDeferral, firedDeferrals } from "../../store/trigger/deferrals.ts";
import type { Admission } from "../admit/admission.ts";
import type { RunActor, Traces } from "./run-actor.ts";
import type { WaitEndLine } from "./wait-ends.ts";

/** Per turn: few enough that reports and the heartbeat are not delayed. */
const FIRED_LIMIT = 2_000;
const BEGIN_LIMIT = 1_000;

/** The current batch. */
interface Gathering {
  readonly touched: Set<RunActor>;
  readonly traces: Traces;
  readonly now: number;
}

export class Waits {
  readonly #database: Database;
  readonly #admission: Admission;
  readonly #actors: ReadonlyMap<number, RunActor>;
  #isDue = true;
  /** More triggers have fired than were read: a wait that seems to have timed out may be among the rest. */
  isBehind = false;
  /** Lines of the current batch. */
  #lastLines: WaitEndLine[] = [];

  constructor(database: Database, admission: Admission, actors: ReadonlyMap<number, RunActor>) {
    this.#database = database;
    this.#admission = admission;
    this.#actors = actors;
  }

  /** The last log lines of waits that timed out; written when the batch is stored, otherwise dropped. */
  drainLastLines(): readonly WaitEndLine[] {
    const lines = this.#lastLines;
    this.#lastLines = [];
    return lines;
  }

  /** A trigger of ours may have fired. */
  requestRead(): void {
    this.#isDue = true;
  }

  /** More triggers have fired than one turn handles. */
  get isDue(): boolean {
    return this.#isDue || this.#admission.hasStarters;
  }

  async readFired(jobId: number): Promise<FiredDeferral[]> {
    if (!this.#isDue) return [];
    this.#isDue = false;
    try {
      const fired = await firedDeferrals(this.#database, jobId, FIRED_LIMIT);
      this.isBehind = fired.length === FIRED_LIMIT;
      if (this.isBehind) this.#isDue = true;
      return fired;
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
  }

  /** Skips runs that are not loaded: after loading, they are read again. */
  applyFired(fired: readonly FiredDeferral[], { touched, traces, now }: Gathering): void {
    for (const row of fired) {
      const actor = this.#actors.get(row.dag_run_id);
      if (!actor) continue;
      const instance = actor.model.get(row.task_id, row.map_index);
      const keptSlot = instance?.wait?.keepsSlot === true;
      const moved = actor.fired(row, { at: now, traces });
      if (moved && keptSlot) this.#admission.freed(actor, moved);
      touched.add(actor);
    }
  }

  /** true: a wait of this run has timed out. */
  endOverdue(actor: RunActor, { traces, now }: Omit<Gathering, "touched">): boolean {
    const overdue = actor.model.nextOverdue(now);
    for (const instance of overdue) {
      const keptSlot = instance.wait?.keepsSlot === true;
      const { attempt, tryNumber } = instance;
      actor.overdue(instance, { at: now, traces });
      if (attempt !== null && instance.reason !== null)
        this.#recordEnd(actor, instance, { attempt, tryNumber });
      if (keptSlot) this.#admission.freed(actor, instance);
    }
    return overdue.length > 0;
  }

  #recordEnd(actor: RunActor, instance: Instance, of: Pick<WaitEndLine, "attempt" | "tryNumber">): void {
    const place = [actor.run.dag_id, `${actor.id}`, instance.node.id, `${instance.mapIndex}`];
    const message = `The wait has ended: ${instance.reason}`;
    this.#lastLines.push({ ...of, place, level: instance.state === "skipped" ? "info" : "error", message });
  }

  /** Starts the instances that begin with a wait. true: some take a slot, which the database may reject. */
  begin({ touched, traces, now }: Gathering): boolean {
    let takesSlots = false;
    for (const { actor, instance, hasSlot } of this.#admission.drainStarters(BEGIN_LIMIT)) {
      touched.add(actor);
      const keepsSlot = this.#admission.keepsDeferred(actor, instance);
      const hasBegun = actor.startWaiting(instance, { at: now, traces, keepsSlot });
      // The pool no longer counts deferred tasks, or a branch skipped the instance.
      if (hasSlot && !(hasBegun && keepsSlot)) this.#admission.freed(actor, instance);
      if (!hasBegun) continue;
      takesSlots ||= keepsSlot;
    }
    return takesSlots;
  }
}
