/** Which of a job's runs a signal may concern, by its name: exact names by a look into an index, patterns one by one. */
import { hasWildcard, namesMatch } from "../model/index.ts";
import type { RunActor } from "./run-actor.ts";
import type { SignalName } from "./run-ears.ts";

export class RunNames {
  readonly #exact = new Map<string, Set<RunActor>>();
  readonly #patterns = new Map<RunActor, readonly SignalName[]>();

  add(actor: RunActor, names: readonly SignalName[]): void {
    const patterns = names.filter(hasWildcard);
    if (patterns.length > 0) this.#patterns.set(actor, patterns);
    for (const name of names) {
      if (hasWildcard(name)) continue;
      const actors = this.#exact.get(textOf(name)) ?? new Set();
      this.#exact.set(textOf(name), actors.add(actor));
    }
  }

  drop(actor: RunActor, names: readonly SignalName[]): void {
    this.#patterns.delete(actor);
    for (const name of names) {
      const actors = this.#exact.get(textOf(name));
      if (actors?.delete(actor) && actors.size === 0) this.#exact.delete(textOf(name));
    }
  }

  concernedBy(signal: SignalName): Iterable<RunActor> {
    const sure = this.#exact.get(textOf(signal));
    if (this.#patterns.size === 0) return sure ?? [];
    const found = new Set(sure);
    for (const [actor, names] of this.#patterns)
      if (names.some((name) => namesMatch(name, signal))) found.add(actor);
    return found;
  }
}

function textOf({ key, namespace }: SignalName): string {
  return `${namespace}\n${key}`;
}
