/** What pages and the shared worker send to each other. */
import type { LiveMessage, LiveState, LostMessages } from "./messages.ts";

export interface FromPage {
  /** All topics of the page from now on; null: the page is closed; undefined: it is still open. */
  readonly topics?: readonly string[] | null;
}

export interface ToPage {
  readonly message?: LiveMessage | LostMessages;
  readonly state?: LiveState;
}

/** Browsers run the timers of hidden pages once per minute. */
export const ALIVE_MS = 30_000;
export const FORGET_MS = 200_000;
