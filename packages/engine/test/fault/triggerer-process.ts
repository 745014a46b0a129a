import { existsSync, readFileSync } from "node:fs";
import { ComponentProcess, type Place } from "./component-process.ts";

export interface TriggererPlace extends Place {
  /** false: it neither hears wake-ups nor sends any, as behind a pooler that knows no LISTEN. */
  readonly notifies: boolean;
}

/** One triggerer process, from its start to its end. */
export class TriggererProcess extends ComponentProcess {
  readonly #place: TriggererPlace;

  constructor(place: TriggererPlace) {
    super(place, "triggerer-program.ts", { FAULT_NOTIFY: place.notifies ? "on" : "off" });
    this.#place = place;
  }

  /** Its trigger runner; null while there is none. */
  runnerPid(): number | null {
    const file = runnerFile(this.#place.home, this.pid);
    return existsSync(file) ? Number(readFileSync(file, "utf8")) || null : null;
  }
}

/** Where a triggerer writes the id of its runner's process. */
export function runnerFile(home: string, pid: number): string {
  return `${home}.${pid}.runner`;
}
