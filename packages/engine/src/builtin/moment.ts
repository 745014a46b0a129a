/**
 * Moments in time. The database fires these by itself and never has them run; they are here for a sensor that looks
 * once in a while, and for whoever runs one all the same.
 */
import type { TriggerHost } from "@tradewind/sdk/program";
import { Pause } from "./abort.ts";
import { instant, members, whole } from "./argument-readers.ts";
import { builtinKind, type Fired } from "./builtin-kind.ts";

/** Longer waits overflow the timer, and clocks are set meanwhile. */
const LONGEST_TIMER_MS = 3_600_000;

export const dateTimeKind = builtinKind("tradewind.datetime", {
  args: members({ moment: instant }),
  run: ({ moment }, host) => waitFor(Date.parse(moment), moment, host),
  check: async ({ moment }) => (Date.parse(moment) <= Date.now() ? moment : undefined),
});

export const timeDeltaKind = builtinKind("tradewind.timedelta", {
  args: members({ deltaMs: whole(0) }),
  run: ({ deltaMs }, host) => waitFor(Date.now() + deltaMs, null, host),
  // A single look does not know when the wait began: whoever asks twice has to ask for the moment itself.
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
