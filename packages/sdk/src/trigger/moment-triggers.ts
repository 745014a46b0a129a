/** Triggers of time: rows with a moment, which a triggerer fires without ever running them. */

import type { Duration } from "../schedule/duration.ts";
import type { Moment } from "../schedule/instant.ts";
import { BuiltinTrigger, OptionReader } from "./builtin-trigger.ts";

export interface DateTimeOptions {
  /** A Date, a date alone (midnight UTC), or an ISO text with "Z" or an offset. */
  readonly moment: Moment;
}

/**
 * Fires at a moment, with that moment as an ISO text; at once when it is past.
 *
 * @example
 * ```ts
 * await ctx.until("opening", new DateTimeTrigger({ moment: "2027-01-04T08:00:00Z" }));
 * ```
 */
export class DateTimeTrigger extends BuiltinTrigger<"tradewind.datetime"> {
  constructor(options: DateTimeOptions) {
    const o = new OptionReader("DateTimeTrigger", options);
    const moment = o.moment("moment");
    super(
      "tradewind.datetime",
      { moment },
      { ...o.place(), wake: { at: moment }, timed: { payload: moment } },
    );
  }
}

export interface TimeDeltaOptions {
  /** Counted from the moment the wait begins. */
  readonly delta: Duration;
}

/**
 * Fires some time after the wait began, with the moment it fires as an ISO text.
 *
 * @example
 * ```ts
 * await ctx.until("cooled", new TimeDeltaTrigger({ delta: "2h" }));
 * ```
 */
export class TimeDeltaTrigger extends BuiltinTrigger<"tradewind.timedelta"> {
  constructor(options: TimeDeltaOptions) {
    const o = new OptionReader("TimeDeltaTrigger", options);
    const deltaMs = o.duration("delta");
    super(
      "tradewind.timedelta",
      { deltaMs },
      { ...o.place(), wake: { afterMs: deltaMs }, timed: { payload: null } },
    );
  }
}
