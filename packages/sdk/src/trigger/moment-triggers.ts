/** Time triggers: rows with a moment, which a triggerer fires without running them. */

import type { Duration } from "../schedule/duration.ts";
import type { Moment } from "../schedule/instant.ts";
import { BuiltinTrigger, OptionReader } from "./builtin-trigger.ts";

/**
 * Options of a {@link DateTimeTrigger}.
 * @example const options: DateTimeOptions = { moment: "2027-01-04T08:00:00Z" };
 */
export interface DateTimeOptions {
  /** A Date, a date alone (midnight UTC), or an ISO text with "Z" or an offset. */
  readonly moment: Moment;
}

/**
 * Fires at a moment, with that moment as an ISO text; fires at once if it is in the past.
 * @example await ctx.until("opening", new DateTimeTrigger({ moment: "2027-01-04T08:00:00Z" }));
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

/**
 * Options of a {@link TimeDeltaTrigger}.
 * @example const options: TimeDeltaOptions = { delta: "2h" };
 */
export interface TimeDeltaOptions {
  /** The duration, counted from the beginning of the wait. */
  readonly delta: Duration;
}

/**
 * Fires a duration after the wait began, with the moment at which it fires as an ISO text.
 * @example await ctx.until("cooled", new TimeDeltaTrigger({ delta: "2h" }));
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
