/**
 * What a run should do, told in the slowest and plainest way: after every event, every task is looked at again, and the
 * states of its upstream are counted afresh. Written from the rules, sharing no code with the engine; the engine has to
 * agree with it, event by event.
 */
import type { DagManifest, TaskManifest, TriggerRule } from "@tradewind/sdk/manifest";

export type EndState = "success" | "failed" | "skipped" | "upstream_failed" | "removed";
export type ReferenceState =
  | EndState
  | "none"
  | "scheduled"
  | "queued"
  | "running"
  | "up_for_retry"
  | "up_for_reschedule"
  | "deferred";

export interface ReferenceInstance {
  readonly taskId: string;
  readonly mapIndex: number;
  state: ReferenceState;
  tries: number;
  losses: number;
  isPastFine: boolean;
}

/** `ended` covers what an attempt or a trigger can say about the end of a try. */
export type ReferenceEvent =
  | {
      readonly what: "queue" | "start" | "defer" | "resume" | "reschedule" | "wake" | "openGate";
      readonly of: string;
    }
  | { readonly what: "succeed"; readonly of: string; readonly skip: readonly string[] }
  | { readonly what: "skip"; readonly of: string }
  | { readonly what: "fail"; readonly of: string; readonly retry: boolean }
  | { readonly what: "lose"; readonly of: string; readonly budget: number }
  | { readonly what: "expand"; readonly task: string; readonly length: number }
  | { readonly what: "halt"; readonly active: "success" | "failed" | "skipped" };

export function keyOf(taskId: string, mapIndex: number): string {
  return `${taskId}[${mapIndex}]`;
}

export class ReferenceRun {
  readonly #tasks: readonly TaskManifest[];
  #instances: ReferenceInstance[];

  constructor(manifest: DagManifest) {
    this.#tasks = upstreamFirst(manifest.tasks);
    this.#instances = this.#tasks.map((task) => fresh(task.taskId, -1));
    this.#lookAtEverything();
  }

  instances(): readonly ReferenceInstance[] {
    return this.#instances;
  }

  /** Ready for admission, held for its past, or held until it is known over how many items it runs. */
  waitsFor(instance: ReferenceInstance): "slots" | "past" | "length" | null {
    if (instance.state === "scheduled") return "slots";
    if (instance.state !== "none" || this.#judge(instance) !== "run") return null;
    return this.#task(instance).map && instance.mapIndex < 0 ? "length" : "past";
  }

  happen(event: ReferenceEvent): void {
    this.#apply(event);
    this.#lookAtEverything();
  }

  end(): "running" | "success" | "task_failure" | "all_tasks_deadlocked" {
    const unfinished = this.#instances.filter((i) => !isEnd(i.state));
    if (unfinished.length > 0) {
      const canMove = unfinished.some((i) => i.state !== "none" || this.waitsFor(i) !== null);
      return canMove ? "running" : "all_tasks_deadlocked";
    }
    const deciding = this.#decidingTasks();
    const failed = this.#instances.filter((i) => i.state === "failed" || i.state === "upstream_failed");
    return failed.some((i) => deciding.has(i.taskId)) ? "task_failure" : "success";
  }

  #apply(event: ReferenceEvent): void {
    if (event.what === "halt") {
      for (const i of this.#instances) {
        if (isEnd(i.state) || this.#task(i).role === "teardown") continue;
        i.state = ["running", "deferred", "up_for_reschedule"].includes(i.state) ? event.active : "skipped";
      }
      return;
    }
    if (event.what === "expand") {
      const others = this.#instances.filter((i) => i.taskId !== event.task);
      const mapped = Array.from({ length: event.length }, (_, index) => fresh(event.task, index));
      const nothing = { ...fresh(event.task, -1), state: "skipped" as const };
      this.#instances = [...others, ...(event.length === 0 ? [nothing] : mapped)];
      return;
    }
    const i = this.#instances.find((one) => keyOf(one.taskId, one.mapIndex) === event.of)!;
    switch (event.what) {
      case "queue":
        i.state = "queued";
        break;
      case "start":
        i.state = "running";
        break;
      case "defer":
        i.state = "deferred";
        break;
      case "reschedule":
        i.state = "up_for_reschedule";
        break;
      case "resume":
        i.state = "scheduled";
        break;
      case "wake":
        if (i.state === "up_for_retry") this.#newTry(i);
        i.state = "scheduled";
        break;
      case "openGate":
        i.isPastFine = true;
        break;
      case "succeed":
        i.state = "success";
        for (const other of this.#instances) {
          const isUnstarted = other.state === "none" || other.state === "scheduled";
          if (isUnstarted && event.skip.includes(other.taskId)) other.state = "skipped";
        }
        break;
      case "skip":
        i.state = "skipped";
        break;
      case "fail":
        this.#fail(i, event.retry);
        break;
      case "lose":
        i.losses++;
        if (i.losses > event.budget) this.#fail(i, true);
        else i.state = "scheduled";
        break;
    }
  }

  #fail(i: ReferenceInstance, retry: boolean): void {
    const hasTryLeft = i.tries < 1 + this.#task(i).retries;
    i.state = retry && hasTryLeft ? "up_for_retry" : "failed";
  }

  #newTry(i: ReferenceInstance): void {
    i.tries++;
    i.losses = 0;
  }

  /** Upstream before downstream, so that a task sees all that the event did to the tasks before it. */
  #lookAtEverything(): void {
    for (const task of this.#tasks) {
      for (const i of this.#instances.filter((one) => one.taskId === task.taskId && one.state === "none")) {
        const verdict = this.#judge(i);
        if (verdict === "wait") continue;
        if (verdict !== "run") {
          i.state = verdict;
        } else if (this.waitsFor(i) === "past" && (i.isPastFine || !isGated(task))) {
          this.#newTry(i);
          i.state = "scheduled";
        }
      }
    }
  }

  #judge(i: ReferenceInstance): Verdict {
    const task = this.#task(i);
    const upstream = this.#instances.filter((other) => task.upstream.includes(other.taskId));
    const isSetup = (id: string) =>
      this.#tasks.some((other) => other.taskId === id && other.role === "setup");
    return judgeByRule(task.rule, {
      states: upstream.map((other) => other.state),
      setups: upstream.filter((other) => isSetup(other.taskId)).map((other) => other.state),
    });
  }

  /** Last tasks, leaving teardowns aside unless there is nothing else. */
  #decidingTasks(): ReadonlySet<string> {
    const work = this.#tasks.filter((task) => task.role !== "teardown");
    const last = (among: readonly TaskManifest[]) =>
      among.filter((task) => !among.some((other) => other.upstream.includes(task.taskId)));
    const found = last(work);
    return new Set((found.length > 0 ? found : last(this.#tasks)).map((task) => task.taskId));
  }

  #task(i: ReferenceInstance): TaskManifest {
    return this.#tasks.find((task) => task.taskId === i.taskId)!;
  }
}

type Verdict = "run" | "wait" | "skipped" | "upstream_failed";

/** One sentence of the rules after the other. Removal of mapped instances is not part of this interpreter. */
export function judgeByRule(
  rule: TriggerRule,
  upstream: { readonly states: readonly ReferenceState[]; readonly setups: readonly ReferenceState[] },
): Verdict {
  const { states, setups } = upstream;
  if (states.length === 0 || rule === "always") return "run";
  const isBad = (state: ReferenceState) => state === "failed" || state === "upstream_failed";
  const some = (...wanted: ReferenceState[]) => states.some((state) => wanted.includes(state));
  const every = (...wanted: ReferenceState[]) => states.every((state) => wanted.includes(state));
  const allEnded = states.every(isEnd);
  switch (rule) {
    case "allSuccess":
      if (states.some(isBad)) return "upstream_failed";
      if (some("skipped")) return "skipped";
      return every("success", "removed") ? "run" : "wait";
    case "allFailed":
      if (some("success", "skipped")) return "skipped";
      return allEnded ? "run" : "wait";
    case "allDone":
      return allEnded ? "run" : "wait";
    case "allDoneMinOneSuccess":
      if (some("skipped")) return "skipped";
      if (!allEnded) return "wait";
      return some("success") ? "run" : "upstream_failed";
    case "allDoneSetupSuccess":
      if (!allEnded) return "wait";
      if (setups.length === 0 || setups.includes("success")) return "run";
      return setups.every((state) => state === "skipped") ? "skipped" : "upstream_failed";
    case "oneSuccess":
      if (some("success")) return "run";
      if (!allEnded) return "wait";
      return every("skipped") ? "skipped" : "upstream_failed";
    case "oneFailed":
      if (states.some(isBad)) return "run";
      return allEnded ? "skipped" : "wait";
    case "oneDone":
      if (some("success", "failed")) return "run";
      return allEnded ? "skipped" : "wait";
    case "noneFailed":
      if (states.some(isBad)) return "upstream_failed";
      return allEnded ? "run" : "wait";
    case "noneFailedMinOneSuccess":
      if (states.some(isBad)) return "upstream_failed";
      if (!allEnded) return "wait";
      if (some("success")) return "run";
      return every("skipped") ? "skipped" : "upstream_failed";
    case "noneSkipped":
      if (some("skipped")) return "skipped";
      return allEnded ? "run" : "wait";
    case "allSkipped":
      if (some("success", "failed", "upstream_failed")) return "skipped";
      return every("skipped") ? "run" : "wait";
  }
}

export function isEnd(state: ReferenceState): state is EndState {
  return ["success", "failed", "skipped", "upstream_failed", "removed"].includes(state);
}

function isGated(task: TaskManifest): boolean {
  return task.dependsOnPast || task.waitForDownstream;
}

function fresh(taskId: string, mapIndex: number): ReferenceInstance {
  return { taskId, mapIndex, state: "none", tries: 0, losses: 0, isPastFine: false };
}

/** Takes, again and again, the tasks whose upstream has all been taken. */
function upstreamFirst(tasks: readonly TaskManifest[]): TaskManifest[] {
  const taken: TaskManifest[] = [];
  while (taken.length < tasks.length) {
    const ids = new Set(taken.map((task) => task.taskId));
    const next = tasks.filter((task) => !ids.has(task.taskId) && task.upstream.every((id) => ids.has(id)));
    if (next.length === 0) throw new Error("the DAG has a cycle");
    taken.push(...next);
  }
  return taken;
}
