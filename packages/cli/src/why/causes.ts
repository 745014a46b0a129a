/**
 * Why a task is or is not running, from the task back to the root cause. The server explains each task by itself; this module
 * joins the explanations to a chain: the task waits for another task, which waits for a full pool.
 */
import { ENDED_TASK_STATES, type TaskInstance } from "../client/resources.ts";
import { instanceName } from "../output/instance-name.ts";
import { span } from "../output/when.ts";
import type { NamedTask, RunFacts, Verdict } from "./run-facts.ts";

export interface Cause {
  /** The server's reason code; null: the state of another task, with its own causes. */
  readonly code: string | null;
  readonly says: string;
  readonly because: readonly Cause[];
}

/** A longer chain adds no information. */
const DEEPEST = 20;
/** Of many upstream tasks, only the first few are explained. */
const WIDEST = 5;

/** Reasons that come from signals; running and ended tasks have them too. */
const DRIVEN = new Set([
  "ON_SIGNAL_FAILING",
  "RUN_CLOSED",
  "SIGNAL",
  "SIGNALS_HELD",
  "START_PENDING",
  "STOPPING",
  "TICK",
]);
/** Reasons for a rerun of ended tasks. */
const AGAIN = new Set(["GROUP_RETRY", "RUN_RETRY"]);
/** Reasons for a task that ended without running. */
const DECIDED = new Set(["MAP_EMPTY", "MAP_SOURCE", "UPSTREAM_DECIDED"]);

interface Place {
  readonly taskId: string;
  readonly mapIndex: number;
}

/** An instance of this run, or of an earlier one. */
interface PlaceInRun extends Place {
  readonly facts: RunFacts;
}

/** What blocks or ended this instance; empty if nothing does. */
export function causesOf(facts: RunFacts, place: Place): Promise<Cause[]> {
  return new Explanation(facts).causes({ ...place, facts }, 0);
}

/** What happens next to a task that is not blocked: it is being stopped, or will run again. */
export async function outlookOf(facts: RunFacts, { mapIndex, taskId }: Place): Promise<Cause[]> {
  const { reasons, state } = await facts.verdict(taskId, mapIndex);
  const isSettled =
    state === "running" || state === "restarting" || ENDED_TASK_STATES.has(state ?? "pending");
  return isSettled
    ? reasons
        .filter(({ code }) => DRIVEN.has(code) || AGAIN.has(code))
        .map(({ code, message }) => ({ code, says: clause(message), because: [] }))
    : [];
}

class Explanation {
  readonly #facts: RunFacts;
  readonly #explained = new Set<string>();

  constructor(facts: RunFacts) {
    this.#facts = facts;
  }

  async causes(place: PlaceInRun, depth: number): Promise<Cause[]> {
    const { state, reasons } = await place.facts.verdict(place.taskId, place.mapIndex);
    switch (state) {
      case "running":
      case "restarting":
      case "success":
        return [];
      case "failed":
        return [cause(await this.#failure(place))];
      case "upstream_failed":
      case "skipped": {
        const decided = reasons.filter(({ code }) => DECIDED.has(code));
        if (decided.length > 0) return await this.#named(decided, place.facts, depth);
        const own = (await this.#instance(place))?.reason;
        if (!own && state === "upstream_failed") return [];
        return [cause(own ?? "a branch or short circuit before it chose another path")];
      }
      default:
        return await this.#named(reasons, place.facts, depth);
    }
  }

  /** Each reason with the causes of the tasks it names. A rule decision is explained by those tasks. */
  async #named(reasons: Verdict["reasons"], facts: RunFacts, depth: number): Promise<Cause[]> {
    const all: Cause[] = [];
    for (const { code, dag_run_id, message, tasks = [] } of reasons) {
      const theirs = facts.ofRun(dag_run_id);
      const because: Cause[] = [];
      for (const task of tasks.slice(0, WIDEST))
        because.push(await this.#explainOnce(task, theirs, depth + 1));
      if (tasks.length > WIDEST) because.push(cause(`and ${tasks.length - WIDEST} more before it`));
      if (code === "UPSTREAM_DECIDED" && because.length > 0) all.push(...because);
      else all.push({ code, says: clause(message), because });
    }
    return all;
  }

  async #explainOnce(named: NamedTask, facts: RunFacts, depth: number): Promise<Cause> {
    const place = { taskId: named.task_id, mapIndex: named.map_index, facts };
    const instance = await this.#instance(place);
    const where = facts === this.#facts ? "" : ` of run ${facts.runId}`;
    const says = instance
      ? `${instanceName(instance)}${where} ${stateSentence(instance)}`
      : `${await this.#nameOf(named, facts)}${where} ${named.state === null ? "has not started" : `is ${named.state}`}`;
    const key = `${place.mapIndex} ${place.taskId} ${facts.runId}`;
    if (this.#explained.has(key) || depth >= DEEPEST) return cause(says);
    this.#explained.add(key);
    return cause(says, await this.causes(place, depth));
  }

  /** The name of an instance that was not read. */
  async #nameOf({ map_index, task_id }: NamedTask, facts: RunFacts): Promise<string> {
    const { rendered_map_index } = await facts.verdict(task_id, map_index);
    return instanceName({ task_id, map_index, rendered_map_index });
  }

  async #failure(place: PlaceInRun): Promise<string> {
    const instance = await this.#instance(place);
    const reason = instance?.reason ? `: ${instance.reason}` : "";
    return `try ${instance?.try_number ?? 1} failed${reason}`;
  }

  async #instance({ facts, taskId, mapIndex }: PlaceInRun): Promise<TaskInstance | undefined> {
    return (await facts.instances(taskId)).find((each) => each.map_index === mapIndex);
  }
}

function stateSentence(instance: TaskInstance): string {
  if (instance.state === null) return "has not started";
  if (instance.state === "running" && instance.start_date) {
    return `is running for ${span((Date.now() - Date.parse(instance.start_date)) / 1000)}`;
  }
  return `is ${instance.state}`;
}

/** A sentence in the form that follows "because". */
function clause(sentence: string): string {
  const text = sentence.replace(/\.$/, "");
  return /^[A-Z][a-z]/.test(text) ? text[0]!.toLowerCase() + text.slice(1) : text;
}

function cause(says: string, because: readonly Cause[] = []): Cause {
  return { code: null, says, because };
}
