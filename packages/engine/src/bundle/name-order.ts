/**
 * Stores files with new DAGs in the order of their names, independent of their import times: if two new files define the
 * same DAG, the first by name gets it, in every process and after every restart.
 */
export class NameOrder {
  readonly #files: readonly string[];
  readonly #answered = new Set<string>();
  readonly #held = new Map<string, () => void>();
  #next = 0;

  /** The files of a pass. */
  constructor(files: readonly string[]) {
    this.#files = [...files].sort();
  }

  /** `store`: called as soon as each file before this one has been answered; null if there is nothing to store. */
  answer(file: string, store: (() => void) | null): void {
    this.#answered.add(file);
    if (store !== null) this.#held.set(file, store);
    for (; this.#next < this.#files.length; this.#next++) {
      const first = this.#files[this.#next] as string;
      if (!this.#answered.has(first)) return;
      this.#held.get(first)?.();
      this.#held.delete(first);
    }
  }
}
