/** The reasons to query the database. */
import type { Topic } from "../../job/wake-up.ts";

export interface Reads {
  readonly due: boolean;
  readonly queued: boolean;
  readonly places: boolean;
  readonly orphans: boolean;
  readonly pools: boolean;
  readonly paused: boolean;
  readonly peers: boolean;
  readonly callbacks: boolean;
  readonly continuous: boolean;
  readonly timetables: boolean;
  readonly abandoned: boolean;
}

export const NOTHING: Reads = {
  due: false,
  queued: false,
  places: false,
  orphans: false,
  pools: false,
  paused: false,
  peers: false,
  callbacks: false,
  continuous: false,
  timetables: false,
  abandoned: false,
};
export const EVERYTHING: Reads = {
  due: true,
  queued: true,
  places: true,
  orphans: true,
  pools: true,
  paused: true,
  peers: true,
  callbacks: true,
  continuous: true,
  timetables: true,
  abandoned: true,
};

export function isRunTopic(topic: Topic | ""): topic is `run:${number}` {
  return topic.startsWith("run:");
}

export function runOf(topic: `run:${number}`): number {
  return Number(topic.slice("run:".length));
}

/** The queries that follow from a wake-up; "": wake-ups may have been lost. */
export function readsAfter(topic: Topic | ""): Partial<Reads> {
  if (isRunTopic(topic)) return { queued: true, places: true, due: true, abandoned: true, continuous: true };
  switch (topic) {
    case "":
      return EVERYTHING;
    case "runs":
      return { queued: true, places: true };
    case "dags":
      // Limits are counted like pools.
      return {
        due: true,
        queued: true,
        places: true,
        pools: true,
        paused: true,
        timetables: true,
        continuous: true,
      };
    case "pools":
      return { pools: true };
    case "jobs":
      // A job that has ended leaves runs and callbacks, and starts no more queued runs.
      return { peers: true, orphans: true, queued: true, callbacks: true };
    case "handed":
      return { paused: true };
    default:
      return {};
  }
}

/** Topics that are passed to the hosts of backfills and deadlines in this process, and to the scheduler itself. */
export function concernsHosts(topic: Topic | ""): topic is Topic {
  return ["backfills", "notices", "jobs", "runs"].includes(topic) || topic.startsWith("run:");
}
