/**
 * The success rule, which every edit must keep: a run is a success only if every task that its rules demand has run.
 *
 * It is checked at the end of a run, from two independent sources: the end states of the instances, and a ledger of the
 * executions, marks and clears. For every instance one of these holds:
 *
 * 1. Its last attempt reported the current state, and began after the instance was last cleared.
 * 2. A user has set the current state since.
 * 3. The final states of the others do not allow it to run: by its trigger rule, a branch, or the list of its map.
 *
 * An attempt must also have begun after its upstream ended, unless a later edit cleared the upstream task, or the list of a
 * map that contains it, and kept the instance. If both tasks have starts of their own, the downstream task must have begun
 * after the first end of the upstream task: a further start of the upstream task does not repeat the downstream task.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { EARLY, isEnd, judgeByRule, type ReferenceState, type Verdict } from "./reference-rules.ts";
import { keyOf, type Placed, ReferenceShape } from "./reference-shape.ts";

export interface EndedInstance extends Placed {
  readonly state: ReferenceState;
  /** The tasks that it skipped as a successful branch. */
  readonly skip: readonly string[];
  /** Ended by the list of its map, which was empty or unusable. */
  readonly isListEnd: boolean;
}

interface Record {
  begun: number;
  ended: number;
  /** The first end since the last clear. */
  firstEnded: number;
  marked: number;
  cleared: number;
  /** The state reported by the last attempt or set by the last mark. */
  state: ReferenceState | null;
}

const NEVER = -1;
const UNTOUCHED: Record = {
  begun: NEVER,
  ended: NEVER,
  firstEnded: NEVER,
  marked: NEVER,
  cleared: NEVER,
  state: null,
};

/** Executions, marks and clears in the order of their events; `keyOf` names the instances. */
export class Ledger {
  readonly #records = new Map<string, Record>();
  #now = 0;

  of({ path, taskId }: Placed): Readonly<Record> {
    const record = this.#of(keyOf(taskId, path));
    // A clear of its placeholder, before the map was expanded, also counts.
    const standIns = path.map((_, depth) => this.#of(keyOf(taskId, path.slice(0, depth))).cleared);
    return { ...record, cleared: Math.max(record.cleared, ...standIns) };
  }

  /** The first attempt of a try begins. */
  begin(key: string): void {
    this.#of(key).begun = ++this.#now;
  }

  /** An attempt has reported the end of the task. */
  end(key: string, state: ReferenceState): void {
    const record = this.#of(key);
    Object.assign(record, { ended: ++this.#now, state });
    if (record.firstEnded <= record.cleared) record.firstEnded = record.ended;
  }

  mark(key: string, state: ReferenceState): void {
    Object.assign(this.#of(key), { marked: ++this.#now, state });
  }

  /** The instance must begin again. */
  clear(key: string): void {
    this.#of(key).cleared = ++this.#now;
  }

  #of(key: string): Record {
    const known = this.#records.get(key);
    const record = known ?? { ...UNTOUCHED };
    this.#records.set(key, record);
    return record;
  }
}

/** Describes what a successful run has not done. */
export function unmetDemands(
  manifest: DagManifest,
  instances: readonly EndedInstance[],
  ledger: Ledger,
  /** The task needs a start and had none. */
  isUndemanded: (taskId: string) => boolean = () => false,
): string[] {
  const shape = new ReferenceShape(manifest);
  const unmet: string[] = [];
  for (const i of instances) {
    const key = keyOf(i.taskId, i.path);
    const { begun, cleared, ended, marked, state } = ledger.of(i);
    if (!isEnd(i.state)) unmet.push(`${key} is ${i.state}`);
    else if (marked > Math.max(cleared, begun, ended) && state === i.state) continue;
    else if (begun > cleared && ended > begun && state === i.state)
      unmet.push(...staleness(shape, i, instances, ledger).map((other) => `${key} ran before ${other}`));
    else if (!isUndemanded(i.taskId) && verdictOn(shape, i, instances) === "run")
      unmet.push(`${key} is ${i.state}, but has not run`);
  }
  return unmet;
}

/** The upstream instances that ended after the instance began. */
function staleness(
  shape: ReferenceShape,
  of: EndedInstance,
  all: readonly EndedInstance[],
  ledger: Ledger,
): string[] {
  if (EARLY.includes(shape.task(of).rule)) return [];
  const { begun } = ledger.of(of);
  return shape
    .upstreamOf(of, all)
    .rule.filter((other) => {
      const { ended, firstEnded } = ledger.of(other);
      const areStarted = hasOwnStarts(shape, of) && hasOwnStarts(shape, other);
      return (areStarted ? firstEnded : ended) > begun && madeAgain(shape, other, all, ledger) < begun;
    })
    .map(({ path, taskId }) => keyOf(taskId, path));
}

function hasOwnStarts(shape: ReferenceShape, of: EndedInstance): boolean {
  return shape.task(of).rules?.some(({ action }) => action === "start") === true;
}

/** When the instance, or the list of an enclosing map, was last cleared: a different list may have created a new item. */
function madeAgain(
  shape: ReferenceShape,
  of: EndedInstance,
  all: readonly EndedInstance[],
  ledger: Ledger,
): number {
  const lists = shape.mapsAround(of).flatMap(([map, path]) => shape.sourcesOf(map, path, all));
  return Math.max(ledger.of(of).cleared, ...lists.map((each) => madeAgain(shape, each, all, ledger)));
}

function verdictOn(shape: ReferenceShape, i: EndedInstance, all: readonly EndedInstance[]): Verdict {
  const isRuledOut = all.some(
    (branch) => branch.state === "success" && branch.skip.includes(i.taskId) && shape.isWithin(branch, i),
  );
  if (isRuledOut) return "skipped";
  const map = shape.mapAhead(i);
  const own = map && !shape.isAlone(i) ? "run" : judge(shape, i, all);
  if (own !== "run" || !map) return own;
  const states = shape.sourcesOf(map, i.path, all).map(({ state }) => state);
  const verdict = judgeByRule("allSuccess", { states, setups: [] });
  return verdict === "run" && i.isListEnd ? (i.state as Verdict) : verdict;
}

function judge(shape: ReferenceShape, i: EndedInstance, all: readonly EndedInstance[]): Verdict {
  const { guards, rule } = shape.upstreamOf(i, all);
  const states = (of: readonly EndedInstance[]) => of.map(({ state }) => state);
  const guarded = judgeByRule("allSuccess", { states: states(guards), setups: [] });
  if (guarded !== "run") return guarded;
  const setups = states(rule.filter(({ taskId }) => shape.isSetup(taskId)));
  return judgeByRule(shape.task(i).rule, { states: states(rule), setups });
}
