/** Finds the inboxes of a job's runs for a signal by its name: exact names by an index, patterns one by one. */
import { hasWildcard, namesMatch } from "../../model/index.ts";
import type { SignalInbox, SignalName } from "./signal-inbox.ts";

export class RunNames {
  readonly #exact = new Map<string, Set<SignalInbox>>();
  readonly #patterns = new Map<SignalInbox, readonly SignalName[]>();

  add(inbox: SignalInbox): void {
    const patterns = inbox.names.filter(hasWildcard);
    if (patterns.length > 0) this.#patterns.set(inbox, patterns);
    for (const name of inbox.names) {
      if (hasWildcard(name)) continue;
      const inboxes = this.#exact.get(textOf(name)) ?? new Set();
      this.#exact.set(textOf(name), inboxes.add(inbox));
    }
  }

  drop(inbox: SignalInbox): void {
    this.#patterns.delete(inbox);
    for (const name of inbox.names) {
      const inboxes = this.#exact.get(textOf(name));
      if (inboxes?.delete(inbox) && inboxes.size === 0) this.#exact.delete(textOf(name));
    }
  }

  concernedBy(signal: SignalName): Iterable<SignalInbox> {
    const sure = this.#exact.get(textOf(signal));
    if (this.#patterns.size === 0) return sure ?? [];
    const found = new Set(sure);
    for (const [inbox, names] of this.#patterns)
      if (names.some((name) => namesMatch(name, signal))) found.add(inbox);
    return found;
  }
}

function textOf({ key, namespace }: SignalName): string {
  return `${namespace}\n${key}`;
}
