/**
 * Which triggers share a process after a trigger process has crashed and the guilty trigger is unknown. Pure: it
 * assigns triggers to processes from events and their times. The state is in the memory of one triggerer; when that
 * triggerer ends, or a trigger moves to another one, the search starts again with the next crash.
 *
 * The triggers of a crashed process are suspects. They are split into groups, one process each; when a group crashes,
 * it is split again, until a trigger is alone. Only a trigger that crashes its own process, several times, is guilty.
 * A group that has survived a multiple of the time that the crash took is acquitted: its triggers return to the main
 * process, to the triggers that were never suspected. So a leak that needs minutes to fill the memory gets its minutes.
 *
 * The number of groups is bounded. Where a split needs room, two groups are merged: two that have survived for as long
 * as the crash took, or else the two largest, if they are at least as large as the group to be split. So the smallest
 * group that crashes can always be split eventually, and the search ends for any number of guilty triggers.
 */

/** The process of all triggers that are not suspected. */
export const MAIN = 0;
/** Processes of suspects at the same time. */
export const MAX_GROUPS = 6;
/** Number of groups that the triggers of a crashed process are split into, if there is room. */
const PARTS = 3;
/** One crash of its own process may be an accident of the machine, and two a coincidence. */
export const CRASHES_ALONE = 3;
/** With fewer neighbours there is more memory to fill: a group must survive longer than the last crash took. */
const SURVIVAL_FACTOR = 3;
/** After this long a group may have to share a process with another that has survived as long. */
const MERGE_FACTOR = 1.5;
/** An immediate crash may take this long on a busy machine. */
const MIN_CRASH_MS = 3_000;

export interface Suspect {
  readonly id: number;
  /** Triggers of one class in one version: if one of them leaks, usually all do. */
  readonly kind: string;
}

export interface Crash {
  /** The group whose process crashed: `MAIN`, or its number. */
  readonly group: number;
  /** The triggers that ran in it. */
  readonly suspects: readonly Suspect[];
  /** In milliseconds, by a monotonic clock. */
  readonly at: number;
  /** How long the process had lived. */
  readonly lifetimeMs: number;
  /** The trigger whose code blocked the process when it crashed: suspected first. Null if none was observed. */
  readonly seen: number | null;
}

interface Group {
  readonly ids: Set<number>;
  /** Groups that were split from the same crash of the main process. */
  readonly origin: number;
  /** How long the guilty trigger needed to crash its process. */
  readonly crashMs: number;
  readonly since: number;
}

export class CrashSuspects {
  readonly #groups = new Map<number, Group>();
  readonly #groupOf = new Map<number, number>();
  /** How often a trigger has crashed a process of its own. */
  readonly #crashesAlone = new Map<number, number>();
  #lastGroup = MAIN;
  #lastOrigin = 0;

  /** Number of suspected triggers. */
  get size(): number {
    return this.#groupOf.size;
  }

  hasGroup(group: number): boolean {
    return this.#groups.has(group);
  }

  groupOf(id: number): number {
    return this.#groupOf.get(id) ?? MAIN;
  }

  /** Returns the guilty trigger if this crash has proven one. */
  crashed(crash: Crash): number | null {
    const { at, group, suspects } = crash;
    const crashMs = Math.max(crash.lifetimeMs, MIN_CRASH_MS);
    const origin = this.#groups.get(group)?.origin ?? ++this.#lastOrigin;
    this.#learn(origin, crashMs);
    const [only] = suspects.map(({ id }) => id);
    if (only === undefined) return null;
    if (suspects.length === 1) {
      const crashes = (this.#crashesAlone.get(only) ?? 0) + 1;
      this.#crashesAlone.set(only, crashes);
      if (crashes >= CRASHES_ALONE) {
        this.forget(only);
        return only;
      }
    }
    const facts = { origin, crashMs, since: at };
    const split = this.#split(crash);
    if (split.length > 1 || (group === MAIN && suspects.length === 1 && this.#room(group) > 0)) {
      for (const part of split) {
        this.#place(
          part.map(({ id }) => id),
          ++this.#lastGroup,
          facts,
        );
      }
    } else if (group !== MAIN) {
      // It keeps its process, which restarts.
      this.#place([], group, facts);
    }
    return null;
  }

  /** The trigger has ended, or was stopped. */
  forget(id: number): void {
    this.#crashesAlone.delete(id);
    this.#remove(id);
  }

  /** Acquits the groups that have survived for long enough. */
  acquit(at: number): void {
    for (const group of [...this.#groups.values()]) {
      if (at < acquittalAt(group)) continue;
      for (const id of [...group.ids]) this.forget(id);
    }
  }

  /** When the next group is acquitted if it survives; null if no trigger is suspected. */
  nextAcquittal(): number | null {
    const moments = [...this.#groups.values()].map(acquittalAt);
    return moments.length === 0 ? null : Math.min(...moments);
  }

  /** The crash of one part determines how long the other parts of the same origin have to survive. */
  #learn(origin: number, crashMs: number): void {
    for (const [number, group] of this.#groups) {
      if (group.origin !== origin || group.crashMs <= crashMs) continue;
      this.#groups.set(number, { ...group, crashMs });
    }
  }

  #split({ at, group, suspects, seen }: Crash): (readonly Suspect[])[] {
    const wanted = Math.min(PARTS, suspects.length);
    let room = this.#room(group);
    while (room < wanted && this.#makeRoom({ at, group, size: suspects.length, isUrgent: room < 2 })) {
      room = this.#room(group);
    }
    const count = Math.min(wanted, room);
    if (count < 2) return [suspects];
    const first = suspects.filter(({ id }) => id === seen);
    // It may have been running by chance: the other suspects must be split too.
    if (first.length === 0 || count < 3) return parts(suspects, count);
    return [
      first,
      ...parts(
        suspects.filter(({ id }) => id !== seen),
        count - 1,
      ),
    ];
  }

  /** Free groups for the parts of this group, which they replace. */
  #room(group: number): number {
    return MAX_GROUPS - this.#groups.size + (this.#groups.has(group) ? 1 : 0);
  }

  /** Survivors are merged only with survivors: an innocent trigger must not share a process with one that is about to crash. */
  #makeRoom(need: { at: number; group: number; size: number; isUrgent: boolean }): boolean {
    const others = [...this.#groups].filter(([number]) => number !== need.group);
    const hasSurvived = ([, { crashMs, since }]: [number, Group]) => need.at - since > MERGE_FACTOR * crashMs;
    const survivors = others.filter(hasSurvived).sort(([, a], [, b]) => a.since - b.since);
    const larger = others
      .filter((each) => !hasSurvived(each) && each[1].ids.size >= need.size)
      .sort(([, a], [, b]) => b.ids.size - a.ids.size);
    const [one, two] = survivors.length >= 2 ? survivors : need.isUrgent ? larger : [];
    if (one === undefined || two === undefined) return false;
    // The time that both survivors have survived, each in a process of its own, counts.
    const since = survivors.length >= 2 ? Math.max(one[1].since, two[1].since) : need.at;
    this.#merge(one, two, since);
    return true;
  }

  /** The smaller group moves into the process of the larger. */
  #merge(one: [number, Group], two: [number, Group], since: number): void {
    const [from, to] = one[1].ids.size < two[1].ids.size ? [one, two] : [two, one];
    const crashMs = Math.max(from[1].crashMs, to[1].crashMs);
    this.#place(from[1].ids, to[0], { origin: to[1].origin, crashMs, since });
  }

  #place(ids: Iterable<number>, number: number, facts: Omit<Group, "ids">): void {
    const members = this.#idsOf(number);
    this.#groups.set(number, { ...facts, ids: members });
    for (const id of [...ids]) {
      this.#remove(id);
      members.add(id);
      this.#groupOf.set(id, number);
    }
  }

  #idsOf(group: number): Set<number> {
    return this.#groups.get(group)?.ids ?? new Set();
  }

  #remove(id: number): void {
    const number = this.groupOf(id);
    const members = this.#idsOf(number);
    members.delete(id);
    this.#groupOf.delete(id);
    if (members.size === 0) this.#groups.delete(number);
  }
}

function acquittalAt({ crashMs, since }: Group): number {
  return since + SURVIVAL_FACTOR * crashMs;
}

/** By kind if there are several: then triggers of a leaking kind are soon separated from the others. */
function parts(suspects: readonly Suspect[], count: number): (readonly Suspect[])[] {
  const kinds = [...Map.groupBy(suspects, ({ kind }) => kind).values()].sort((a, b) => b.length - a.length);
  if (kinds.length === 1) return slices(suspects, count);
  const bins: Suspect[][] = Array.from({ length: Math.min(count, kinds.length) }, () => []);
  for (const kind of kinds)
    bins.reduce((least, bin) => (bin.length < least.length ? bin : least)).push(...kind);
  return bins;
}

function slices(suspects: readonly Suspect[], count: number): (readonly Suspect[])[] {
  const size = Math.ceil(suspects.length / count);
  return Array.from({ length: Math.ceil(suspects.length / size) }, (_, at) =>
    suspects.slice(at * size, (at + 1) * size),
  );
}
