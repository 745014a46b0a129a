/** A DagRunJob that receives wake-ups: what all of them do alike. */
import { publishesStates, type Topic } from "../../job/wake-up.ts";
import type { Connection, Listening } from "../../store/database/database.ts";
import type { RunBatch } from "../../store/task/run-batch.ts";
import { DagRunJob } from "./dag-run-job.ts";
import { compareOwned } from "./owned-runs.ts";

export abstract class NotifiedJob extends DagRunJob {
  #listening: Listening | null = null;

  /** The task columns of a version, for the rows of a run that starts. */
  protected readonly columns = async (tx: Connection, versionId: number) =>
    (await this.versions.get(tx, versionId)).columns;

  /** A wake-up; "" when some may have been missed. */
  protected abstract onWakeUp(topic: Topic | ""): void;

  override async start(): Promise<void> {
    this.#listening = await this.wakeUps.listen((topic) => this.onWakeUp(topic));
    await super.start();
  }

  override async stop(graceMs?: number): Promise<void> {
    await this.#listening?.close();
    await super.stop(graceMs);
  }

  /** False while wake-ups may be missed. */
  protected get isListening(): boolean {
    return this.#listening?.isUp === true;
  }

  /** Reads fired triggers, signals and reports; "": all of them. Returns whether the topic means nothing else. */
  protected requestPolls(topic: Topic | ""): boolean {
    if (publishesStates(topic)) this.requestSignals("states");
    if (topic === "fired" || topic === "") this.requestFired();
    if (topic === "signals" || topic === "") this.requestSignals();
    if (topic === "reports" || topic === "") this.requestReports();
    return topic === "fired" || topic === "signals" || topic === "reports";
  }

  /** Compares the job's runs in the database with memory: finds edits and pauses whose wake-up was lost. */
  protected async checkOwnedRuns(): Promise<void> {
    const { stale, paused } = await compareOwned(this.database, this.lease.jobId, this.actors);
    for (const id of stale) this.markStale(id);
    for (const [actor, isPaused] of paused) this.setPaused(actor, isPaused);
  }

  /** Others may start tasks in the slots that a stored batch has freed. */
  protected announceFreedSlots({ slots }: Pick<RunBatch, "slots">): void {
    if (this.hasPeers && slots.values().some((delta) => delta < 0)) this.wakeUps.sendToOthers("pools");
  }
}
