import type { Duration, Json } from "@tradewind/sdk";
import type { ConnectionFacts, ErrorFacts, LogLevel, SignalToSend } from "@tradewind/sdk/program";
import type { When } from "./moment.ts";
import type { Action, NoticeResult } from "./result.ts";
import type { Approvals } from "./trigger/given-answers.ts";
import type { Triggers } from "./trigger/trigger-script.ts";

/**
 * Options of {@link runDag}.
 * @example const options: RunOptions = { conf: { region: "eu" }, now: "2027-01-04T00:00:00Z", variables: { api_url: "http://localhost" } };
 */
export interface RunOptions<Conf = unknown> {
  /** The run's conf, which the DAG's schema validates into `ctx.params`. */
  readonly conf?: Conf;
  /** The logical date of the run (default now; null for none). */
  readonly logicalDate?: Date | string | null;
  /** The data interval of the run (default: empty, at the logical date). */
  readonly dataInterval?: { readonly start: Date | string; readonly end: Date | string };
  /** The time on the run's clock at the start (default now). */
  readonly now?: Date | string;
  /** "virtual": retries and waits take no time; "real": they take their time (default "virtual"). */
  readonly clock?: "virtual" | "real";
  /** The events of the triggers that tasks wait for; time triggers need no entry. */
  readonly triggers?: Triggers;
  /** The answers to approvals, by task id. */
  readonly approvals?: Approvals;
  /** External signals: at the start of the run, `after` a duration, or `at` a moment. */
  readonly signals?: readonly GivenSignal[];
  /** Manual commands during the run. */
  readonly commands?: readonly GivenCommand[];
  /**
   * The duration after which a run with signal rules or times is closed (default "1d", or longer if something is
   * scheduled later); an idle run is closed earlier.
   */
  readonly until?: Duration;
  /**
   * The real time without a call of `ctx` after which a task counts as waiting, so that the virtual clock advances
   * (default "50ms" for streaming tasks, "1s" for others that can be stopped).
   */
  readonly settle?: Duration;
  readonly variables?: Readonly<Record<string, string>>;
  /** Stored connections by id; missing fields are empty. */
  readonly connections?: Readonly<Record<string, Partial<Omit<ConnectionFacts, "id">>>>;
  /**
   * The maximum number of concurrent batch tasks; 1 makes the order deterministic (default: the DAG's `maxActiveTasks`,
   * which counts all tasks).
   */
  readonly concurrency?: number;
  /** Called for every step of the run as it happens; must not throw. */
  readonly onEvent?: (event: RunProgress) => void;
}

/**
 * An external signal, by default in the namespace "default" with the value null.
 * @example const signals: GivenSignal[] = [{ key: "order.paid", value: { order: "A-7" }, after: "1h" }];
 */
export interface GivenSignal extends When {
  readonly namespace?: string;
  readonly key: string;
  readonly value?: unknown;
}

/**
 * A manual command that starts, restarts or stops a task; without a task, "stop" closes the run.
 * @example const commands: GivenCommand[] = [{ task: "train", action: "restart", after: "2h" }, { action: "stop", after: "1d" }];
 */
export interface GivenCommand extends When {
  readonly task?: string;
  readonly action: "start" | "restart" | "stop";
  /** The user in the log of actions (default "user"). */
  readonly by?: string;
}

interface OfTask {
  readonly taskId: string;
  readonly mapIndex: number;
}

/**
 * One step of a run, for `onEvent`.
 * @example await runDag(sales, { onEvent: (event: RunProgress) => console.log(event.type, event.taskId) });
 */
export type RunProgress =
  /** `resumed`: the try continues after a wait. */
  | ({ readonly type: "started"; readonly tryNumber: number; readonly resumed: boolean } & OfTask)
  | ({ readonly type: "log" } & OfTask & LogLine)
  /** It waits for a trigger, or was put off. */
  | ({
      readonly type: "waiting";
      readonly tryNumber: number;
      readonly state: "deferred" | "up_for_reschedule";
      /** The id of the trigger; null: the task was rescheduled. */
      readonly trigger: string | null;
      /** The key of the signal that it waits for; null: it waits for something else. */
      readonly signal: string | null;
      readonly step: string | null;
      /** When the wait ends by itself: an ISO instant; null: unknown. */
      readonly until: string | null;
      /** When the wait times out; null: never. */
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
      /** The reason of the state, if there is more to say. */
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

/**
 * A line that a task wrote with `ctx.log`.
 * @example const warnings = (lines: readonly LogLine[]) => lines.filter(({ level }) => level === "warn");
 */
export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, Json>> | undefined;
}
