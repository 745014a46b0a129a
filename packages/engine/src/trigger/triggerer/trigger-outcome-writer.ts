/**
 * Outcomes that wait to be stored. Outcomes that the database did not accept stay and are retried; outcomes of triggers
 * that this job no longer owns are dropped. An event is acknowledged to its trigger after the commit, never before.
 *
 * If the process dies, none of its pending outcomes was acknowledged. The triggerer that takes the triggers over runs
 * them again: conditions that still hold fire again, and sources deliver their events again.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import type { TriggerOutcome } from "../../model/index.ts";
import { isJointKind } from "../../model/index.ts";
import { CommitUnknownError, type Database } from "../../store/database/database.ts";
import { eventRunId, forgetEvents, storeEventRuns } from "../../store/plan/event-runs.ts";
import type { ClaimedTrigger } from "../../store/trigger/trigger-claim.ts";
import { type FiredWait, fireTriggers, type WaitOutcome } from "../../store/trigger/trigger-fire.ts";

/** Limit per transaction: it must not delay others. */
const MAX_FIRES = 1_000;
const MAX_BYTES = 8 * 1024 * 1024;

interface PendingFire {
  readonly id: number;
  readonly outcome: WaitOutcome;
  readonly bytes: number;
  /** The answer to a commit of it was lost: if the trigger is gone, it was stored. */
  isDoubtful: boolean;
}

interface PendingRun {
  readonly triggerId: number;
  readonly runId: string;
  readonly payload: Json;
  readonly isRemembered: boolean;
  readonly bytes: number;
}

export interface Stored {
  /** Triggers that fired, with the waits they ended and the closing log line. */
  readonly fired: readonly {
    readonly id: number;
    readonly waits: readonly FiredWait[];
    readonly outcome: WaitOutcome;
  }[];
  /** Triggers with an event that is now stored: as an outcome, or as a run. */
  readonly acknowledged: readonly number[];
  /** Triggers that this job no longer owns. */
  readonly lost: readonly number[];
  /** Number of new runs. */
  readonly runs: number;
}

export class TriggerOutcomeWriter {
  readonly #database: Database;
  readonly #fires = new Map<number, PendingFire>();
  #runs: PendingRun[] = [];
  /** Schedules whose last event no longer holds. */
  readonly #ceased = new Set<number>();

  constructor(database: Database) {
    this.#database = database;
  }

  get size(): number {
    return this.#fires.size + this.#runs.length + this.#ceased.size;
  }

  /** For waiting tasks. The first outcome of a trigger counts: it ends the trigger. */
  fire(id: number, outcome: TriggerOutcome): void {
    if (this.#fires.has(id)) return;
    const told: WaitOutcome = outcome.kind === "event" ? withoutKey(outcome) : outcome;
    this.#fires.set(id, { id, outcome: told, bytes: JSON.stringify(told).length, isDoubtful: false });
  }

  /** For a schedule. The run's id is chosen here, once: storing it may have to be repeated. */
  event(trigger: ClaimedTrigger, event: { readonly payload: Json; readonly key: string | null }): void {
    // A key identifies an event by itself; payloads of user-defined triggers are not states.
    const isRemembered = event.key === null && trigger.bundle_hash === null && !isJointKind(trigger.kind);
    this.run(trigger.id, eventRunId({ trigger, ...event, at: new Date() }), event.payload, isRemembered);
  }

  /** Called after its last event was stored, and before the next one. */
  ceased(id: number): void {
    this.#ceased.add(id);
  }

  run(triggerId: number, runId: string, payload: Json, isRemembered = false): void {
    this.#ceased.delete(triggerId);
    // A poll may find an event again that is still to be stored.
    if (this.#runs.some((run) => run.triggerId === triggerId && run.runId === runId)) return;
    this.#runs.push({ triggerId, runId, payload, isRemembered, bytes: JSON.stringify(payload).length });
  }

  forget(id: number): void {
    this.#fires.delete(id);
    this.#ceased.delete(id);
    this.#runs = this.#runs.filter(({ triggerId }) => triggerId !== id);
  }

  clear(): void {
    this.#fires.clear();
    this.#ceased.clear();
    this.#runs = [];
  }

  /**
   * Stores the outcomes, or the first part of them. On rejection everything is still pending. Stored outcomes must be
   * returned to the caller, so a failure after them is kept for the next call.
   */
  async store(jobId: number): Promise<Stored> {
    const { fired, acknowledged, lost } = await this.#storeFires(jobId);
    const runs = await this.#storeRuns(jobId).catch((error) => {
      if (fired.length + acknowledged.length + lost.length === 0) throw error;
      return { acknowledged: [], lost: [], added: 0 };
    });
    return {
      fired,
      acknowledged: [...acknowledged, ...runs.acknowledged],
      lost: [...lost, ...runs.lost],
      runs: runs.added,
    };
  }

  async #storeFires(jobId: number): Promise<Pick<Stored, "fired" | "acknowledged" | "lost">> {
    const pending = firstOf(this.#fires.values());
    const result = await fireTriggers(this.#database, jobId, pending).catch((error) => {
      if (error instanceof CommitUnknownError) for (const fire of pending) fire.isDoubtful = true;
      throw error;
    });
    const fired: Stored["fired"][number][] = [];
    const acknowledged: number[] = [];
    const lost: number[] = [];
    for (const { id, outcome, isDoubtful } of pending) {
      this.#fires.delete(id);
      const waits = result.fired.get(id);
      if (waits !== undefined) fired.push({ id, waits, outcome });
      const isStored = waits !== undefined || (isDoubtful && result.gone.has(id));
      if (!isStored) lost.push(id);
      else if (outcome.kind === "event") acknowledged.push(id);
    }
    return { fired, acknowledged, lost };
  }

  async #storeRuns(jobId: number): Promise<{ acknowledged: number[]; lost: number[]; added: number }> {
    const ceased = [...this.#ceased];
    await forgetEvents(this.#database, jobId, ceased);
    for (const id of ceased) this.#ceased.delete(id);
    const pending = firstOf(this.#runs);
    const stored = await storeEventRuns(this.#database, jobId, pending);
    const done = new Set(pending);
    this.#runs = this.#runs.filter((run) => !done.has(run));
    const ours = new Set(stored.map(({ triggerId }) => triggerId));
    const triggers = [...new Set(pending.map(({ triggerId }) => triggerId))];
    return {
      acknowledged: triggers.filter((id) => ours.has(id)),
      lost: triggers.filter((id) => !ours.has(id)),
      added: stored.filter(({ dagRunId }) => dagRunId !== null).length,
    };
  }
}

function withoutKey({ key: _, ...event }: Extract<TriggerOutcome, { kind: "event" }>): WaitOutcome {
  return event;
}

/** The line about an outcome in the task's log. */
export function lastWord(outcome: WaitOutcome): { readonly level: LogLevel; readonly message: string } {
  if (outcome.kind === "event")
    return { level: "info", message: `The trigger fired: ${shown(outcome.payload)}` };
  if (outcome.kind === "failed") {
    const { message, stack, code } = outcome.error;
    const text = stack?.includes(message) ? stack : [message, ...(stack ? [stack] : [])].join("\n");
    return { level: "error", message: `The trigger failed${code === null ? "" : ` (${code})`}: ${text}` };
  }
  const { ending } = outcome;
  if (ending.kind === "success") return { level: "info", message: "The trigger ended the task: success." };
  const reason = ending.reason === null ? "" : `: ${ending.reason}`;
  const level = ending.kind === "failed" ? "error" : "info";
  return { level, message: `The trigger ended the task: ${ending.kind}${reason}` };
}

function shown(payload: Json): string {
  const text = JSON.stringify(payload);
  return text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text;
}

/** At least one, of any size. */
function firstOf<P extends { readonly bytes: number }>(pending: Iterable<P>): P[] {
  const first: P[] = [];
  let bytes = 0;
  for (const each of pending) {
    if (first.length >= MAX_FIRES || (first.length > 0 && bytes + each.bytes > MAX_BYTES)) break;
    first.push(each);
    bytes += each.bytes;
  }
  return first;
}
