/**
 * Runs and their tasks: topics "runs", "dag:…" and "run:…". Signals say which have changed; their states are then read, so a
 * message never is older than the one before it. Of tasks that are about to run there are no signals, only wake-ups: those
 * of watched runs are read and compared.
 */
import type { Topic as WakeUp } from "../../job/wake-up.ts";
import type { Signal } from "../../signal/signal.ts";
import type { Database } from "../../store/database/database.ts";
import { type LiveTaskRow, type RunName, readLiveRuns, type TaskName } from "../../store/ui/live-runs.ts";
import { MOST_ENTRIES, type RunPart } from "./live-messages.ts";
import type { LiveSource, Reading } from "./live-source.ts";
import { RunMessages } from "./run-messages.ts";
import type { WatchedTopics } from "./watched-topics.ts";

/** Runs and tasks that one read looks up. */
const MOST_RUNS = MOST_ENTRIES;
const MOST_TASKS = 2_000;
/** Changed runs, or changed tasks of one run, that are kept until they are read. */
const MOST_KEPT = 10_000;
/** Tasks of one run that are about to run, and the time between two readings: longer if there are more than that. */
const MOST_BEFORE_START = 500;
const LOOK_MS = 200;
const LOOK_MANY_MS = 2_000;
const RUN_ACTION = /dag_run|task_instance|^(?:start|restart|stop)$/;

export class LiveRuns implements LiveSource {
  readonly gapMs = 100;
  readonly #runs = new Set<string>();
  /** By "<dag>/<run>": "<map index> <task>". */
  readonly #tasks = new Map<string, Set<string>>();
  readonly #parts = new Map<string, Set<RunPart>>();
  /** Runs with more changed tasks than can be listed. */
  readonly #overfull = new Set<string>();
  /** By run and task: its state and try when it was last found about to run. */
  #beforeStart = new Map<string, Map<string, string>>();
  #hasMoved = false;
  #isLost = false;
  #lookAt = 0;

  isWanted(watched: WatchedTopics): boolean {
    const { dags, runs } = watched;
    return runs.size > 0 || dags.size > 0 || watched.has("runs") || watched.has("home");
  }

  namespaces({ runs }: WatchedTopics): readonly string[] {
    return runs.size > 0 ? ["task", "deadline"] : [];
  }

  onSignal({ key, namespace, value }: Signal, { runs }: WatchedTopics): boolean {
    const [dagId, runId, ...rest] = key.split("/");
    if (dagId === undefined || runId === undefined) return false;
    const run = `${dagId}/${runId}`;
    if (namespace === "task" && runs.has(run)) {
      this.#addTask(run, taskKey(rest.join("/"), (value as { mapIndex: number }).mapIndex));
      return true;
    }
    if (namespace === "deadline" && runs.has(run)) this.#addPart(run, "deadlines");
    else if (namespace === "action" && RUN_ACTION.test((value as { action: string }).action)) {
      if (runs.has(run)) this.#addPart(run, "actions");
    } else if (namespace !== "run") return false;
    this.#runs.add(run);
    this.#isLost ||= this.#runs.size > MOST_KEPT;
    return true;
  }

  onWakeUp(topic: WakeUp): boolean {
    if (topic !== "moves" && topic !== "fired") return false;
    this.#hasMoved = true;
    return true;
  }

  onTopics({ runs }: WatchedTopics): boolean {
    const isNew = [...runs].some((run) => !this.#beforeStart.has(run));
    this.#hasMoved ||= isNew;
    return isNew;
  }

  reset(): void {
    for (const each of [this.#runs, this.#tasks, this.#parts, this.#overfull, this.#beforeStart])
      each.clear();
    this.#hasMoved = false;
    this.#isLost = false;
  }

  async read(database: Database, watched: WatchedTopics): Promise<Reading> {
    if (this.#isLost) {
      this.reset();
      return { messages: [], isLost: true };
    }
    const { beforeStart, overfull, parts, runs, tasks } = this.#take(watched);
    if (runs.length + tasks.length + beforeStart.length + overfull.length + parts.size === 0)
      return { messages: [], isMore: this.#isMore };
    const began = performance.now();
    const found = await readLiveRuns(database, {
      ...{ runs, tasks, beforeStart },
      mostBeforeStart: MOST_BEFORE_START + 1,
    });
    if (beforeStart.length > 0) this.#lookAt = Math.max(this.#lookAt, began + LOOK_MS);
    const about = new RunMessages(watched);
    for (const row of found.runs) about.addRun(row);
    for (const [run, each] of parts) for (const part of each) about.addPart(run, part);
    for (const row of found.tasks) {
      about.addTask(row);
      this.#beforeStart.get(nameOf(row))?.delete(taskKey(row.task_id, row.map_index));
    }
    for (const row of this.#compare(beforeStart, found.beforeStart)) about.addTask(row);
    for (const run of [...overfull, ...this.#overfull]) about.addMore(run);
    this.#overfull.clear();
    return { messages: about.messages(), isMore: this.#isMore };
  }

  get #isMore(): boolean {
    return this.#runs.size > 0 || this.#tasks.size > 0 || this.#hasMoved;
  }

  #addTask(run: string, task: string): void {
    const tasks = this.#tasks.get(run) ?? new Set();
    this.#tasks.set(run, tasks);
    if (tasks.size < MOST_KEPT) tasks.add(task);
    else this.#overfull.add(run);
  }

  #addPart(run: string, part: RunPart): void {
    this.#parts.set(run, (this.#parts.get(run) ?? new Set()).add(part));
  }

  /** What the next read looks up. */
  #take(watched: WatchedTopics) {
    const runs: RunName[] = [];
    for (const run of this.#runs) {
      if (runs.length === MOST_RUNS) break;
      this.#runs.delete(run);
      runs.push(runOf(run));
    }
    const tasks: TaskName[] = [];
    for (const [run, keys] of this.#tasks) {
      for (const key of keys) {
        if (tasks.length === MOST_TASKS) break;
        keys.delete(key);
        tasks.push(taskOf(run, key));
      }
      if (keys.size === 0 || !watched.runs.has(run)) this.#tasks.delete(run);
    }
    const parts = new Map(this.#parts);
    this.#parts.clear();
    const overfull = [...this.#overfull];
    this.#overfull.clear();
    const looks = this.#hasMoved && performance.now() >= this.#lookAt;
    this.#hasMoved &&= !looks && watched.runs.size > 0;
    return { runs, tasks, parts, overfull, beforeStart: looks ? [...watched.runs].map(runOf) : [] };
  }

  /** Tasks that are newly about to run. Those that no longer are, without a signal, are looked up next. */
  #compare(runs: readonly RunName[], rows: readonly LiveTaskRow[]): LiveTaskRow[] {
    if (runs.length === 0) return [];
    const byRun = Map.groupBy(rows, nameOf);
    const now = new Map<string, Map<string, string>>();
    const changed: LiveTaskRow[] = [];
    for (const run of runs.map(nameOf)) {
      const before = this.#beforeStart.get(run);
      const found = byRun.get(run) ?? [];
      const states = new Map<string, string>();
      now.set(run, states);
      if (found.length > MOST_BEFORE_START) {
        this.#overfull.add(run);
        this.#lookAt = performance.now() + LOOK_MANY_MS;
        continue;
      }
      for (const row of found) {
        const key = taskKey(row.task_id, row.map_index);
        const state = `${row.state} ${row.try_number}`;
        states.set(key, state);
        if (before?.get(key) !== state) changed.push(row);
      }
      for (const key of before?.keys() ?? []) if (!states.has(key)) this.#addTask(run, key);
    }
    this.#beforeStart = now;
    return changed;
  }
}

function nameOf({ dag_id, run_id }: RunName): string {
  return `${dag_id}/${run_id}`;
}

function runOf(name: string): RunName {
  const at = name.indexOf("/");
  return { dag_id: name.slice(0, at), run_id: name.slice(at + 1) };
}

function taskKey(taskId: string, mapIndex: number): string {
  return `${mapIndex} ${taskId}`;
}

function taskOf(run: string, key: string): TaskName {
  const at = key.indexOf(" ");
  return { ...runOf(run), task_id: key.slice(at + 1), map_index: Number(key.slice(0, at)) };
}
