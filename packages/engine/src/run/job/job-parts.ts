/** The parts of a job that drives runs, and what connects them. The job itself decides when each part is called. */
import type { AttemptReport } from "../../execute/contract.ts";
import type { Lease } from "../../job/lease.ts";
import type { Mailbox } from "../../job/mailbox.ts";
import type { AttemptOutcome } from "../../model/index.ts";
import type { Logger } from "../../service/logger.ts";
import { Admission } from "../admit/admission.ts";
import { ActiveAttempts } from "../batch/active-attempts.ts";
import type { ReportsContext } from "../batch/reports.ts";
import { StoredReports } from "../batch/stored-reports.ts";
import { Callbacks } from "../dispatch/callbacks.ts";
import { Dispatcher, undispatchable } from "../dispatch/dispatcher.ts";
import { LargeLengths } from "../dispatch/large-lengths.ts";
import { Driving } from "../drive/driving.ts";
import { Expanding } from "../loaded/expanding.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import type { VersionCache } from "../loaded/version-cache.ts";
import { WaitEndLog } from "../loaded/wait-ends.ts";
import { Waits } from "../loaded/waits.ts";
import { type DagRunJobOptions, INFRA_LOSS_BUDGET } from "./dag-run-job-options.ts";
import { Gates } from "./gates.ts";
import { PoisonReports } from "./poison-reports.ts";
import { Timers } from "./timers.ts";

/** What the parts need of their job. */
export interface JobOfParts {
  readonly mailbox: Mailbox<AttemptReport>;
  readonly actors: ReadonlyMap<number, RunActor>;
  readonly versions: VersionCache;
  readonly lease: Lease;
  readonly logger: Logger;
  /** False while it drains or stops: nothing is dispatched. */
  readonly isRunning: () => boolean;
}

export class JobParts {
  readonly activeAttempts = new ActiveAttempts();
  readonly admission: Admission;
  readonly dispatcher: Dispatcher;
  readonly callbacks: Callbacks;
  readonly expanding: Expanding;
  readonly gates = new Gates();
  readonly poison: PoisonReports;
  readonly waits: Waits;
  readonly waitEnds: WaitEndLog;
  readonly timers: Timers;
  readonly driving: Driving;
  readonly reporting: ReportsContext;
  readonly storedReports: StoredReports;

  constructor(
    options: DagRunJobOptions,
    { actors, isRunning, lease, logger, mailbox, versions }: JobOfParts,
  ) {
    const { dags = null, database, executors, foreign, logs, maxMapLength, wakeUps } = options;
    const { activeAttempts } = this;
    const wake = () => mailbox.wake();
    const answer = (attempt: string, outcome: AttemptOutcome) =>
      mailbox.post({ type: "ended", attempt, at: Date.now(), outcome }, attempt);
    this.admission = new Admission(executors, {
      database,
      activeAttempts,
      unsubmitted: (executor) => this.dispatcher.waiting(executor),
      unstoredEnds: () => mailbox.items.filter(({ type }) => type === "ended").length,
      foreign,
    });
    const { admission } = this;
    this.poison = new PoisonReports(logger);
    this.storedReports = new StoredReports(database, {
      attempt: (report) => mailbox.post(report, report.attempt),
      callback: (id, end) =>
        "lost" in end ? this.callbacks.lost(id, end.lost) : this.callbacks.endedRemotely(id, end.error),
      reaction: (reactionId, end) => this.driving.answered({ type: "reactionEnded", reactionId, ...end }),
    });
    this.waits = new Waits(database, admission, actors);
    this.timers = new Timers({ actors, admission, waits: this.waits, onDue: wake });
    const shared = { database, logger, lengths: options.lengths ?? new LargeLengths() };
    this.expanding = new Expanding({
      ...shared,
      recall: (...output) => this.dispatcher.recall(...output),
      wake,
      maxMapLength,
    });
    this.waitEnds = new WaitEndLog(logs, logger);
    this.callbacks = new Callbacks({ ...shared, versions, executors: admission.executors, dags });
    this.driving = new Driving({ ...shared, activeAttempts, admission, wakeUps, wake });
    const { infraLossBudget: lossBudget = INFRA_LOSS_BUDGET } = options;
    const fromLocal = (at: number) => lease.fromLocal(at);
    this.reporting = { activeAttempts, admission, actors, fromLocal, lossBudget };
    this.dispatcher = new Dispatcher({
      ...shared,
      lease,
      isWanted: (attempt) => activeAttempts.isWanted(attempt) && isRunning(),
      dropped: (attempt) => answer(attempt, { kind: "cancelled" }),
      failed: (attempt, error) => answer(attempt, undispatchable(error)),
    });
  }
}
