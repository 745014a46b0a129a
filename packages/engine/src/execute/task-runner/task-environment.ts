/**
 * The environment variables that a DAG or a task sets with `env`. A process runs one task at a time, so they are set in the
 * process itself, which also passes them to programs that the task starts, and are restored when the task ends.
 */
export class TaskEnvironment {
  readonly #target: NodeJS.ProcessEnv;
  /** The previous values; undefined: not set. */
  readonly #before = new Map<string, string | undefined>();

  constructor(target: NodeJS.ProcessEnv) {
    this.#target = target;
  }

  set(values: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(values)) {
      if (!this.#before.has(name)) this.#before.set(name, this.#target[name]);
      this.#target[name] = value;
    }
  }

  /** Returns the names that were set. */
  restore(): string[] {
    const names = [...this.#before.keys()];
    for (const [name, value] of this.#before) {
      if (value === undefined) delete this.#target[name];
      else this.#target[name] = value;
    }
    this.#before.clear();
    return names;
  }
}
