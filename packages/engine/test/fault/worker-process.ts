import { ComponentProcess, type Place } from "./component-process.ts";

/** A worker knows no database. */
export interface WorkerPlace extends Omit<Place, "databaseUrl" | "lease"> {
  /** The address of the API. */
  readonly url: string;
  readonly token: string;
  readonly redisUrl: string;
  readonly queues?: readonly string[];
  readonly slots: number;
}

/** One worker process, from start to exit. */
export class WorkerProcess extends ComponentProcess {
  constructor(place: WorkerPlace) {
    super({ ...place, databaseUrl: "" }, "worker-program.ts", {
      TRADEWIND_URL: place.url,
      TRADEWIND_TOKEN: place.token,
      REDIS_URL: place.redisUrl,
      FAULT_QUEUES: (place.queues ?? ["default"]).join(),
      FAULT_SLOTS: String(place.slots),
    });
  }
}
