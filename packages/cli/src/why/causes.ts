/**
 * Why a task is, or is not, running: from the task that was asked about back to what must happen first. The server
 * judges each task by itself; here its verdicts are joined to a chain: the task waits for another, which waits for a
 * pool, which is full.
 */
import { ENDED_TASK_STATES, type TaskInstance } from "../client/resources.ts";
import { instanceName } from "../output/instance-name.ts";
import { span } from "../output/when.ts";
import type { RunFacts } from "./run-facts.ts";

export interface Cause {
  /** The server's, of what holds a task back; null: that another task is in some state, and why. */
  readonly code: string | null;
  readonly says: string;
  readonly because: readonly Cause[];
}

/** A chain longer than this tells nobody more. */
const DEEPEST = 20;
/** Of many tasks that are waited for, the first few stand for all. */
const WIDEST = 5;

/** Reasons that come from signals: also a task that runs or has ended has them. */
const DRIVEN = new Set(["ON_SIGNAL_FAILING", "RUN_CLOSED", "SIGNAL", "START_PENDING", "STOPPING", "TICK"]);
/** Reasons why what has ended begins again. */
const AGAIN = new Set(["GROUP_RETRY", "RUN_RETRY"]);

interface Place {
  readonly taskId: string;
  readonly mapIndex: number;
}

/** What holds this instance back, or ended it; empty when nothing does. */
export function causesOf(facts: RunFacts, place: Place): Promise<Cause[]> {
  return new Explanation(facts).causes(place, 0);
}

/** What is to come for a task that nothing holds back: that it is being stopped, or what makes it run again. */
export async function outlookOf(facts: RunFacts, { mapIndex, taskId }: Place): Promise<Cause[]> {
  const { reasons, state } = await facts.verdict(taskId, mapIndex);
  const isSettled = state === "running" || state === "restarting" || ENDED_TASK_STATES.has(state ?? "none");
  return isSettled
    ? reasons
        .filter(({ code }) => DRIVEN.has(code) || AGAIN.has(code))
        .map(({ code, message }) => ({ code, says: clause(message), because: [] }))
    : [];
}

class Explanation {
  readonly #facts: RunFacts;
  readonly #told = new Set<string>();

  constructor(facts: RunFacts) {
    this.#facts = facts;
  }

  async causes(place: Place, depth: number): Promise<Cause[]> {
    const { state, reasons } = await this.#facts.verdict(place.taskId, place.mapIndex);
    switch (state) {
      case "running":
      case "restarting":
      case "success":
        return [];
      case "failed":
        return [cause(await this.#failure(place))];
      case "upstream_failed": {
        const own = await this.#ownReason(place);
        const before = await this.#upstream(
          place,
          depth,
          (each) => each === "failed" || each === "upstream_failed",
        );
        // That its rule says so is said by what is before it; of a map, its list may be what is wrong.
        return own && (before.length === 0 || !own.startsWith("trigger rule"))
          ? [cause(own), ...before]
          : before;
      }
      case "skipped": {
        const own = await this.#ownReason(place);
        const before = await this.#upstream(place, depth, (each) => each === "skipped");
        if (own || before.length > 0) return [...(own ? [cause(own)] : []), ...before];
        return [cause("a branch or a short circuit before it took another way")];
      }
      default:
        return Promise.all(
          reasons.map(async ({ code, message }) => {
            const waitsForTasks = code === "UPSTREAM";
            const open = (each: string) => !ENDED_TASK_STATES.has(each);
            const because = waitsForTasks ? await this.#upstream(place, depth, open) : [];
            return { code, says: clause(message), because };
          }),
        );
    }
  }

  /** The direct upstream tasks in states that matter, each with its own causes. */
  async #upstream(place: Place, depth: number, matters: (state: string) => boolean): Promise<Cause[]> {
    const causes: Cause[] = [];
    let more = 0;
    for (const taskId of (await this.#facts.task(place.taskId)).upstream_task_ids) {
      const found = (await this.#facts.instances(taskId)).find(({ state }) => matters(state ?? "none"));
      if (!found) continue;
      if (causes.length === WIDEST) more++;
      else causes.push(await this.#tellOnce(found, depth + 1));
    }
    return more === 0 ? causes : [...causes, cause(`and ${more} more before it`)];
  }

  async #tellOnce(instance: TaskInstance, depth: number): Promise<Cause> {
    const place = { taskId: instance.task_id, mapIndex: instance.map_index };
    const says = `${instanceName(instance)} ${stateSentence(instance)}`;
    if (this.#told.has(placeName(place)) || depth >= DEEPEST) return cause(says);
    this.#told.add(placeName(place));
    return cause(says, await this.causes(place, depth));
  }

  async #failure(place: Place): Promise<string> {
    const instance = await this.#instance(place);
    const reason = instance?.reason ? `: ${instance.reason}` : "";
    return `try ${instance?.try_number ?? 1} failed${reason}`;
  }

  async #ownReason(place: Place): Promise<string | null | undefined> {
    return (await this.#instance(place))?.reason;
  }

  async #instance({ taskId, mapIndex }: Place): Promise<TaskInstance | undefined> {
    return (await this.#facts.instances(taskId)).find((each) => each.map_index === mapIndex);
  }
}

function placeName({ taskId, mapIndex }: Place): string {
  return mapIndex === -1 ? taskId : `${taskId}[${mapIndex}]`;
}

function stateSentence(instance: TaskInstance): string {
  if (instance.state === null) return "has not started";
  if (instance.state === "running" && instance.start_date) {
    return `is running for ${span((Date.now() - Date.parse(instance.start_date)) / 1000)}`;
  }
  return `is ${instance.state}`;
}

/** A sentence as what follows "because". */
function clause(sentence: string): string {
  const text = sentence.replace(/\.$/, "");
  return /^[A-Z][a-z]/.test(text) ? text[0]!.toLowerCase() + text.slice(1) : text;
}

function cause(says: string, because: readonly Cause[] = []): Cause {
  return { code: null, says, because };
}
