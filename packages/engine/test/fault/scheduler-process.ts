import { ComponentProcess, type Place } from "./component-process.ts";

export interface SchedulerPlace extends Place {
  readonly parallelism: number;
  /** A scheduler unless told. */
  readonly job?: "scheduler" | "backfill";
}

/** One scheduler process, from its start to its end. */
export class SchedulerProcess extends ComponentProcess {
  constructor(place: SchedulerPlace) {
    super(place, "scheduler-program.ts", {
      TRADEWIND_PARALLELISM: String(place.parallelism),
      FAULT_JOB: place.job ?? "scheduler",
    });
  }
}
