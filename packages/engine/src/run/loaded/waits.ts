/**
 * The waits of a job's runs: those that begin without a worker, those whose trigger fired, those out of time. Which
 * triggers fired is read from the database when there is a reason to look: a wake-up, a run that was just loaded, the
 * heartbeat in case a wake-up got lost.
 */
import type { Instance } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import { type FiredDeferral, firedDeferrals } from "../../store/trigger/deferrals.ts";
import type { Admission } from "../admit/admission.ts";
import type { RunActor, Traces } from "./run-actor.ts";
import type { WaitEndLine } from "./wait-ends.ts";

/** In one turn: enough to be quick, few enough that reports and the heartbeat do not have to wait. */
const FIRED_LIMIT = 2_000;
const BEGIN_LIMIT = 1_000;

/** The batch at hand. */
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
  /** More has fired than was read: a wait that looks overdue may be among the rest. */
  isBehind = false;
  /** Of the batch at hand. */
  #lastLines: WaitEndLine[] = [];

  constructor(database: Database, admission: Admission, actors: ReadonlyMap<number, RunActor>) {
    this.#database = database;
    this.#admission = admission;
    this.#actors = actors;
  }

  /** What the logs of waits that are out of time end with; to be written when the batch is stored, and else dropped. */
  takeLastLines(): readonly WaitEndLine[] {
    const lines = this.#lastLines;
    this.#lastLines = [];
    return lines;
  }

  /** A trigger of ours may have fired. */
  ask(): void {
    this.#isDue = true;
  }

  /** There is more to do than one turn may. */
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

  /** Runs that are not loaded yet are left: loading them asks again. */
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

  /** true: something in this run was out of time. */
  endOverdue(actor: RunActor, { traces, now }: Omit<Gathering, "touched">): boolean {
    const overdue = actor.model.takeOverdue(now);
    for (const instance of overdue) {
      const keptSlot = instance.wait?.keepsSlot === true;
      const { attempt, tryNumber } = instance;
      actor.overdue(instance, { at: now, traces });
      if (attempt !== null && instance.reason !== null) this.#note(actor, instance, { attempt, tryNumber });
      if (keptSlot) this.#admission.freed(actor, instance);
    }
    return overdue.length > 0;
  }

  #note(actor: RunActor, instance: Instance, of: Pick<WaitEndLine, "attempt" | "tryNumber">): void {
    const place = [actor.run.dag_id, `${actor.id}`, instance.node.id, `${instance.mapIndex}`];
    const message = `The wait is over: ${instance.reason}`;
    this.#lastLines.push({ ...of, place, level: instance.state === "skipped" ? "info" : "error", message });
  }

  /** Instances that begin by waiting. true: some take a slot by it, which the database may refuse. */
  begin({ touched, traces, now }: Gathering): boolean {
    let takesSlots = false;
    for (const { actor, instance, hasSlot } of this.#admission.takeStarters(BEGIN_LIMIT)) {
      touched.add(actor);
      const keepsSlot = this.#admission.keepsDeferred(actor, instance);
      const hasBegun = actor.startWaiting(instance, { at: now, traces, keepsSlot });
      // The pool does not count it any more, or a branch ruled it out.
      if (hasSlot && !(hasBegun && keepsSlot)) this.#admission.freed(actor, instance);
      if (!hasBegun) continue;
      takesSlots ||= keepsSlot;
    }
    return takesSlots;
  }
}
