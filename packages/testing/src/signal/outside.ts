/** External events of a run: signals and manual commands, each at its time on the run's clock. */
import type { Json } from "@tradewind/sdk";
import type { RunFacts, SignalToSend } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import { momentOption } from "../moment.ts";
import type { GivenCommand, GivenSignal, RunOptions } from "../options.ts";

/** Commands are signals, as in the log of the engine. */
export const ACTION_NAMESPACE = "action";

const ACTIONS: ReadonlySet<string> = new Set(["start", "restart", "stop"]);

interface Coming {
  readonly at: number;
  readonly signal: SignalToSend;
}

export interface OutsideParts {
  readonly run: RunFacts;
  readonly startedAt: number;
  readonly taskIds: ReadonlySet<string>;
}

export class Outside {
  /** In the order of time; at the same moment in the order written, signals first. */
  readonly #coming: Coming[];
  /** The time of the last event. */
  readonly lastAt: number;

  constructor(
    { commands = [], signals = [] }: Pick<RunOptions, "commands" | "signals">,
    parts: OutsideParts,
  ) {
    const given = [
      ...signals.map((signal, index) => comingSignal(signal, `signals[${index}]`, parts)),
      ...commands.map((order, index) => comingCommand(order, `commands[${index}]`, parts)),
    ];
    this.#coming = given.sort((a, b) => a.at - b.at);
    this.lastAt = this.#coming.at(-1)?.at ?? parts.startedAt;
  }

  /** Infinity: there are no more events. */
  nextAt(): number {
    return this.#coming[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  drain(now: number): SignalToSend[] {
    const count = this.#coming.findIndex(({ at }) => at > now);
    return this.#coming.splice(0, count < 0 ? this.#coming.length : count).map(({ signal }) => signal);
  }
}

function comingSignal(given: GivenSignal, name: string, { startedAt }: OutsideParts): Coming {
  const { namespace = "default", key, value } = given;
  if (namespace === ACTION_NAMESPACE)
    throw new DagTestError("TW_TEST_BAD_OPTION", `${name}: manual commands belong in "commands"`);
  return { at: momentOption(name, given, startedAt), signal: { namespace, key, value: jsonOf(key, value) } };
}

function comingCommand(given: GivenCommand, name: string, { run, startedAt, taskIds }: OutsideParts): Coming {
  const { action, by = "user", task } = given;
  if (!ACTIONS.has(action))
    throw new DagTestError("TW_TEST_BAD_OPTION", `${name}.action must be "start", "restart" or "stop"`);
  if (task === undefined && action !== "stop")
    throw new DagTestError("TW_TEST_BAD_OPTION", `${name} has no task: a run can only be stopped`);
  if (task !== undefined && !taskIds.has(task)) {
    const known = [...taskIds].join(", ");
    throw new DagTestError("TW_TEST_BAD_OPTION", `${name}: the DAG has no task "${task}", but ${known}`);
  }
  const key = [run.dagId, run.runId, ...(task === undefined ? [] : [task])].join("/");
  const signal = { namespace: ACTION_NAMESPACE, key, value: { action, by } };
  return { at: momentOption(name, given, startedAt), signal };
}

function jsonOf(key: string, value: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(value ?? null)) as Json;
  } catch (cause) {
    throw new DagTestError(
      "TW_TEST_BAD_OPTION",
      `signals: the value of "${key}" must be JSON: ${String(cause)}`,
    );
  }
}
