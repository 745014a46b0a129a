/** Checks the resident memory of a process and its descendants against a limit: Buffers and native memory count, too. */
import { residentBytes } from "./resident-memory.ts";

const EVERY_MS = 500;
const MB = 1024 * 1024;

export class MemoryWatch {
  #timer: NodeJS.Timeout | null;

  /** @param onExceeded Called once, with the megabytes found. */
  constructor(pid: number, limitMb: number, onExceeded: (usedMb: number) => void) {
    const look = async (): Promise<void> => {
      const usedMb = Math.round((await residentBytes(pid)) / MB);
      if (this.#timer === null) return;
      if (usedMb > limitMb) {
        this.stop();
        onExceeded(usedMb);
      } else this.#timer = setTimeout(look, EVERY_MS);
    };
    this.#timer = setTimeout(look, EVERY_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
