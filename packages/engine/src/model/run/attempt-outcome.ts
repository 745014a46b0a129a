import type { TaskOutcome } from "@tradewind/sdk/program";
import type { OutputReference } from "../map/large-value.ts";

type Success = Extract<TaskOutcome, { kind: "success" }>;

/** How an attempt ended, as its executor reports it to the scheduler. */
export type AttemptOutcome =
  | Exclude<TaskOutcome, Success>
  /** `stored` replaces `output` if the output is large. */
  | (Success & { readonly stored?: OutputReference })
  /** The scheduler cancelled the attempt. What follows was decided before that: a stop, a restart, or another owner. */
  | { readonly kind: "cancelled" }
  /** The executor did not run the attempt to its end, e.g. because it is stopping. The task is not at fault. */
  | { readonly kind: "lost"; readonly reason: string };
