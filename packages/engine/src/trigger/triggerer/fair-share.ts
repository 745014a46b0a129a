/** How many triggers each of several triggerers should run. */

export interface Load {
  readonly triggers: number;
  readonly capacity: number;
}

/**
 * The most that one triggerer should have so that all have equally many, those that are full left out. `free` triggers
 * belong to nobody yet. Answers the same number to every triggerer that knows the same facts.
 */
export function fairShare(loads: readonly Load[], free: number): number {
  let total = free + loads.reduce((sum, load) => sum + load.triggers, 0);
  const capacities = loads.map((load) => load.capacity).sort((a, b) => a - b);
  for (const [at, capacity] of capacities.entries()) {
    const share = Math.ceil(total / (capacities.length - at));
    if (share <= capacity) return share;
    total -= capacity;
  }
  return capacities.at(-1) ?? 0;
}

/** How far one may be above its share before it lets go of something: triggers must not wander about for nothing. */
export function slackOf(share: number): number {
  return Math.max(4, Math.ceil(share / 10));
}
