import { existsSync, readFileSync } from "node:fs";
import { ComponentProcess, type Place } from "./component-process.ts";

export interface TriggererPlace extends Place {
  /** false: it neither receives nor sends wake-ups, as behind a pooler without LISTEN. */
  readonly notifies: boolean;
}

/** One triggerer process, from start to exit. */
export class TriggererProcess extends ComponentProcess {
  readonly #place: TriggererPlace;

  constructor(place: TriggererPlace) {
    super(place, "triggerer-program.ts", { FAULT_NOTIFY: place.notifies ? "on" : "off" });
    this.#place = place;
  }

  /** The pid of its trigger runner; null: none. */
  runnerPid(): number | null {
    const file = runnerFile(this.#place.home, this.pid);
    return existsSync(file) ? Number(readFileSync(file, "utf8")) || null : null;
  }
}

/** The file in which a triggerer stores the pid of its runner. */
export function runnerFile(home: string, pid: number): string {
  return `${home}.${pid}.runner`;
}
