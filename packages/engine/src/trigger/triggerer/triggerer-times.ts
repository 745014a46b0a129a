/** How long, how often and how many at once: what a triggerer goes by. */
import type { LeaseTimes } from "../../job/lease.ts";

/** A stall, then the lease, then the others' next look: all of it in less than 15 s. */
export const LEASE: LeaseTimes = { ttlMs: 7_000, renewMs: 2_000, marginMs: 1_500 };
export const STALL_MS = 5_000;

/** In one step: a turn must leave time for what was reported meanwhile, and for the heartbeat. */
export const TIMED_LIMIT = 1_000;
export const CLAIM_LIMIT = 1_000;
/** Cold triggers are claimed this long before they wake. */
export const HORIZON_MS = 250;
/** What was given away is left to others for this long. */
export const GIVEN_MS = 1_000;
/** What is due and locked by another triggerer is looked at again after this long. */
export const BUSY_MS = 100;
export const SWEEP_MS = 60_000;
/** Heartbeats, while nobody has left and nothing is heard. */
export const LOOK_EVERY = 5;
/** However often it is asked for. */
export const SWEEP_AT_MOST_MS = 250;
/** An event is stored: so long a trigger may take to acknowledge it to where it came from. */
export const FAREWELL_MS = 1_000;
/** A schedule's trigger that failed begins again after this long. */
export const POSTPONED_MS = 30_000;
/** Lock not available, deadlock: others were quicker, and the next turn finds what they left. */
export const BUSY_STATES = new Set(["55P03", "40P01"]);

/** Whether the wait for a moment is over. */
export function isDue(wait: number | null): boolean {
  return wait !== null && wait <= 0;
}
