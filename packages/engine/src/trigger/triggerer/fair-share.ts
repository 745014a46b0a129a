/** How many triggers each of several triggerers should run. */

export interface Load {
  readonly triggers: number;
  readonly capacity: number;
}

/**
 * The number of triggers per triggerer at which all have equally many, apart from full ones. `free` triggers have no
 * owner yet. Returns the same number to every triggerer that has the same input.
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

/** How far a triggerer may exceed its share before it releases triggers: avoids needless moves. */
export function slackOf(share: number): number {
  return Math.max(4, Math.ceil(share / 10));
}
