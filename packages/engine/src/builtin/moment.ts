/**
 * Times. The database fires these triggers itself and never runs them; they are here for sensors that poll, and for
 * callers that run one anyway.
 */
import type { TriggerHost } from "@tradewind/sdk/program";
import { Pause } from "./abort.ts";
import { instant, members, whole } from "./argument-readers.ts";
import { builtinKind, type Fired } from "./builtin-kind.ts";

/** Longer waits overflow the timer, and the clock may be set meanwhile. */
const LONGEST_TIMER_MS = 3_600_000;

export const dateTimeKind = builtinKind("tradewind.datetime", {
  args: members({ moment: instant }),
  run: ({ moment }, host) => waitFor(Date.parse(moment), moment, host),
  check: async ({ moment }) => (Date.parse(moment) <= Date.now() ? moment : undefined),
});

export const timeDeltaKind = builtinKind("tradewind.timedelta", {
  args: members({ deltaMs: whole(0) }),
  run: ({ deltaMs }, host) => waitFor(Date.now() + deltaMs, null, host),
  // A single poll does not know when the wait began: a caller that polls twice must use a fixed time.
  check: async ({ deltaMs }) => (deltaMs === 0 ? new Date().toISOString() : undefined),
});

async function* waitFor(
  at: number,
  moment: string | null,
  host: TriggerHost,
): AsyncGenerator<Fired, void, void> {
  const pause = new Pause();
  for (let left = at - Date.now(); left > 0; left = at - Date.now()) {
    await pause.for(Math.min(left, LONGEST_TIMER_MS), host.abort);
    if (host.abort.aborted) return;
  }
  yield { payload: moment ?? new Date(at).toISOString(), key: null };
}
