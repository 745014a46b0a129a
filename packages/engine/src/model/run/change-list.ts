/** The instances that differ from their stored rows. */
import { type Change, type Instance, isOccupying } from "./instance.ts";

export class ChangeList {
  #changed: Instance[] = [];

  add(instance: Instance): void {
    if (instance.dirty) return;
    instance.dirty = true;
    this.#changed.push(instance);
  }

  /** The changes since the last call, without instances that are back in their stored state or no longer in the table. */
  drain(isHere: (instance: Instance) => boolean): Change[] {
    const changes: Change[] = [];
    for (const instance of this.#changed) {
      instance.dirty = false;
      const { committed: from, committedAttempt: fromAttempt, committedTry: fromTry } = instance;
      const { committedMaxTries: fromMaxTries, committedOccupying: wasOccupying, hasBegunAgain } = instance;
      const isSame =
        from === instance.state &&
        fromAttempt === instance.attempt &&
        fromTry === instance.tryNumber &&
        wasOccupying === isOccupying(instance) &&
        !hasBegunAgain;
      if (isSame || !isHere(instance)) continue;
      changes.push({ instance, from, fromAttempt, fromTry, fromMaxTries, wasOccupying, hasBegunAgain });
      instance.hasBegunAgain = false;
      instance.committed = instance.state;
      instance.committedAttempt = instance.attempt;
      instance.committedTry = instance.tryNumber;
      instance.committedMaxTries = instance.maxTries;
      instance.committedOccupying = isOccupying(instance);
    }
    this.#changed = [];
    return changes;
  }

  /** The changes were not stored. */
  restore(changes: readonly Change[]): void {
    for (const change of changes) {
      const { instance, from, fromAttempt, fromTry, fromMaxTries, hasBegunAgain, wasOccupying } = change;
      instance.hasBegunAgain ||= hasBegunAgain;
      instance.committed = from;
      instance.committedAttempt = fromAttempt;
      instance.committedTry = fromTry;
      instance.committedMaxTries = fromMaxTries;
      instance.committedOccupying = wasOccupying;
      this.add(instance);
    }
  }
}
