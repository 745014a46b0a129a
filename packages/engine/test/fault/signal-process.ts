import { ComponentProcess, type Place } from "./component-process.ts";

/** Where a process of the signal storm lives: the program it runs, and what it is told. */
export interface SignalPlace extends Place {
  readonly program: string;
  readonly environment: Readonly<Record<string, string>>;
  /** What it is told otherwise in the second half of the storm. */
  readonly later?: Readonly<Record<string, string>>;
}

/** One process of the signal storm, from its start to its end. */
export class SignalProcess extends ComponentProcess {
  constructor(place: SignalPlace, isLater: boolean) {
    super(place, place.program, { ...place.environment, ...(isLater ? place.later : {}) });
  }
}
