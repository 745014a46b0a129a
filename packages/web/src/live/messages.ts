import type { components } from "../api/schema.gen.ts";

/** What has changed in one topic. */
export type LiveMessage = components["schemas"]["LiveMessage"];

/** Of a topic whose messages were lost: its data has to be read again. */
export interface LostMessages {
  readonly topic: string;
  readonly isLost: true;
}

export type LiveState = "live" | "connecting" | "offline";
