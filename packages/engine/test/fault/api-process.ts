import { ComponentProcess, type Place } from "./component-process.ts";

export interface ApiPlace extends Omit<Place, "lease"> {
  readonly port: number;
  /** Of its workers; the default lease if absent. */
  readonly workerLeaseMs?: number;
}

/** One API server process, from start to exit. */
export class ApiProcess extends ComponentProcess {
  constructor(place: ApiPlace) {
    const { port, workerLeaseMs } = place;
    super(place, "api-program.ts", {
      TRADEWIND_PORT: String(port),
      ...(workerLeaseMs && { FAULT_WORKER_LEASE_MS: String(workerLeaseMs) }),
    });
  }
}
