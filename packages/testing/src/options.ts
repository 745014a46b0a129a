import type { Duration, Json } from "@tradewind/sdk";
import type { ConnectionFacts, ErrorFacts, LogLevel, SignalToSend } from "@tradewind/sdk/program";
import type { When } from "./moment.ts";
import type { Action, NoticeResult } from "./result.ts";
import type { Triggers } from "./trigger/trigger-script.ts";

/** How to run a DAG in a test. */
export interface RunOptions<Conf = unknown> {
  /** The run's conf; `ctx.params` is what the DAG's schema makes of it. */
  readonly conf?: Conf;
  /** The moment the run stands for: now when left out, none when null. */
  readonly logicalDate?: Date | string | null;
  /** The period whose data the run handles; begins and ends at the logical date when left out. */
  readonly dataInterval?: { readonly start: Date | string; readonly end: Date | string };
  /** What the clock of the run shows at the beginning. */
  readonly now?: Date | string;
  /** "virtual": retries and waits take no time. "real": they take as long as they take ("virtual"). */
  readonly clock?: "virtual" | "real";
  /** What the triggers that tasks wait for do. Those of time need no entry: they fire on the clock of the run. */
  readonly triggers?: Triggers;
  /** Signals from outside: there when the run begins, or `after` some time, or `at` a moment. What tasks send is heard too. */
  readonly signals?: readonly GivenSignal[];
  /** What people ask for by hand while it runs. */
  readonly orders?: readonly GivenOrder[];
  /**
   * How long a run that signals or times drive stays open if nothing closes it. "1d", or longer if something is given
   * for later. It is closed earlier when nothing is left to happen.
   */
  readonly until?: Duration;
  /**
   * How long, in real time, a task has to be silent to count as one that waits to be stopped, so that the virtual clock
   * goes on. "50ms" for streaming tasks, "1s" for others that something can stop.
   */
  readonly settle?: Duration;
  readonly variables?: Readonly<Record<string, string>>;
  /** By id; whatever is left out is empty. */
  readonly connections?: Readonly<Record<string, Partial<Omit<ConnectionFacts, "id">>>>;
  /** Batch tasks at once: 1 makes the order fully predictable. The DAG's `maxActiveTasks`, of all tasks, when left out. */
  readonly concurrency?: number;
  /** Called for every step of the run, as it happens. Must not throw. */
  readonly onEvent?: (event: RunProgress) => void;
}

/**
 * A signal from outside; without a namespace it is in "default", without a value it brings null. It may be one that the
 * engine tells, of another run say; what people do by hand is in `orders`.
 */
export interface GivenSignal extends When {
  readonly namespace?: string;
  readonly key: string;
  readonly value?: unknown;
}

/** Starts, restarts or stops a task. Without a task it is for the run itself, which can only be stopped: it is closed. */
export interface GivenOrder extends When {
  readonly task?: string;
  readonly action: "start" | "restart" | "stop";
  /** Who asks for it ("hand"). */
  readonly by?: string;
}

interface OfTask {
  readonly taskId: string;
  readonly mapIndex: number;
}

/** One step of a run. */
export type RunProgress =
  /** `resumed`: it goes on after a wait, in the same try. */
  | ({ readonly type: "started"; readonly tryNumber: number; readonly resumed: boolean } & OfTask)
  | ({ readonly type: "log" } & OfTask & LogLine)
  /** It waits for a trigger, or was put off. */
  | ({
      readonly type: "waiting";
      readonly tryNumber: number;
      readonly state: "deferred" | "up_for_reschedule";
      /** The id of the trigger; null: it was put off. */
      readonly trigger: string | null;
      readonly step: string | null;
      /** When it goes on by itself: an ISO instant; null: not known. */
      readonly until: string | null;
      /** When the wait is out of time; null: never. */
      readonly timeoutAt: string | null;
    } & OfTask)
  /** A try has ended; also a task that its rule or a branch ruled out, with a duration of 0. */
  | ({
      readonly type: "ended";
      readonly tryNumber: number;
      /** A final state, or "up_for_retry". */
      readonly state: string;
      /** Real time. */
      readonly durationMs: number;
      readonly output: Json | undefined;
      readonly error: ErrorFacts | undefined;
      /** Why it ended so, where there is more to say. */
      readonly reason: string | null;
      /** When the next try is due: an ISO instant; null: there is none. */
      readonly retryAt: string | null;
    } & OfTask)
  /** A signal was sent: by a task, or from outside (null). */
  | ({ readonly type: "signal"; readonly taskId: string | null; readonly version: number } & SignalToSend)
  /** A webhook, mail or signal of a callback option was due. */
  | ({ readonly type: "notice" } & NoticeResult)
  /** A rule, a time or a person asks for something. */
  | ({ readonly type: "action" } & Omit<Action, "atMs">);

/** A line that a task wrote with `ctx.log`. */
export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, Json>> | undefined;
}
