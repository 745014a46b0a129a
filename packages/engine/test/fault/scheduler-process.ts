import { ComponentProcess, type Place } from "./component-process.ts";

export interface SchedulerPlace extends Place {
  readonly parallelism: number;
  /** "scheduler" by default. */
  readonly job?: "scheduler" | "backfill";
}

/** One scheduler process, from start to exit. */
export class SchedulerProcess extends ComponentProcess {
  constructor(place: SchedulerPlace) {
    super(place, "scheduler-program.ts", {
      TRADEWIND_PARALLELISM: String(place.parallelism),
      FAULT_JOB: place.job ?? "scheduler",
    });
  }
}
