import { ComponentProcess, type Place } from "./component-process.ts";

/** The program and environment of a process of the signal storm. */
export interface SignalPlace extends Place {
  readonly program: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Environment that differs in the second half of the storm. */
  readonly later?: Readonly<Record<string, string>>;
}

/** One process of the signal storm, from start to exit. */
export class SignalProcess extends ComponentProcess {
  constructor(place: SignalPlace, isLater: boolean) {
    super(place, place.program, { ...place.environment, ...(isLater ? place.later : {}) });
  }
}
