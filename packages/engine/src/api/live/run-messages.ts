/** Messages about runs and tasks from what one read has found: one per topic, unless there are too many tasks. */
import type { LiveRunRow, LiveTaskRow } from "../../store/ui/live-runs.ts";
import { iso } from "../server/fields.ts";
import {
  type LiveMessage,
  type LiveRun,
  type LiveTask,
  MOST_ENTRIES,
  type RunPart,
} from "./live-messages.ts";
import { dagTopic } from "./live-topics.ts";
import type { WatchedTopics } from "./watched-topics.ts";

interface OneRun {
  run: LiveRun | null;
  /** By map index and task: the last one counts. */
  readonly tasks: Map<string, LiveTask>;
  readonly parts: Set<RunPart>;
  more: boolean;
}

export class RunMessages {
  readonly #watched: WatchedTopics;
  readonly #runs: LiveRun[] = [];
  readonly #byRun = new Map<string, OneRun>();

  constructor(watched: WatchedTopics) {
    this.#watched = watched;
  }

  addRun(row: LiveRunRow): void {
    const run = showRun(row);
    this.#runs.push(run);
    const one = this.#of(`${row.dag_id}/${row.run_id}`);
    if (one) one.run = run;
    if (row.parent_dag_id !== null) this.addPart(`${row.parent_dag_id}/${row.parent_run_id}`, "children");
  }

  addTask(row: LiveTaskRow): void {
    const tasks = this.#of(`${row.dag_id}/${row.run_id}`)?.tasks;
    tasks?.set(`${row.map_index} ${row.task_id}`, showTask(row));
  }

  addPart(run: string, part: RunPart): void {
    this.#of(run)?.parts.add(part);
  }

  addMore(run: string): void {
    const one = this.#of(run);
    if (one) one.more = true;
  }

  messages(): LiveMessage[] {
    const messages: LiveMessage[] = [];
    if (this.#runs.length > 0) messages.push({ topic: "runs", runs: this.#runs });
    for (const [dagId, runs] of Map.groupBy(this.#runs, ({ dag_id }) => dag_id))
      if (this.#watched.dags.has(dagId))
        messages.push({ topic: dagTopic(dagId), dag: null, is_deleted: false, runs });
    for (const [name, { more, parts, run, tasks }] of this.#byRun) {
      const listed = [...tasks.values()];
      messages.push({
        topic: `run:${name}`,
        run,
        tasks: listed.slice(0, MOST_ENTRIES),
        more,
        parts: [...parts],
      });
      for (let from = MOST_ENTRIES; from < listed.length; from += MOST_ENTRIES) {
        const rest = listed.slice(from, from + MOST_ENTRIES);
        messages.push({ topic: `run:${name}`, run: null, tasks: rest, more: false, parts: [] });
      }
    }
    return messages;
  }

  /** undefined: the run is not watched. */
  #of(run: string): OneRun | undefined {
    if (!this.#watched.runs.has(run)) return undefined;
    const known = this.#byRun.get(run);
    if (known) return known;
    const made: OneRun = { run: null, tasks: new Map(), parts: new Set(), more: false };
    this.#byRun.set(run, made);
    return made;
  }
}

function showRun(row: LiveRunRow): LiveRun {
  const { dag_id, run_id, run_type, state } = row;
  return {
    ...{ dag_id, run_id, run_type, state },
    run_after: iso(row.run_after),
    logical_date: iso(row.logical_date),
    start_date: iso(row.started_at),
    end_date: iso(row.ended_at),
  };
}

function showTask({ ended_at, map_index, started_at, state, task_id, try_number }: LiveTaskRow): LiveTask {
  return {
    ...{ task_id, map_index, try_number, state },
    start_date: iso(started_at),
    end_date: iso(ended_at),
  };
}
