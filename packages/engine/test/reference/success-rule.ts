/**
 * The rule that every edit has to keep: a run is a success only if every task that its rules demand has run.
 *
 * It is checked at the end of a run, from two sources that know nothing of each other: how the instances ended, and a ledger
 * of what was executed, marked and cleared on the way. For every instance one of these holds:
 *
 * 1. Its last attempt reported the state that it has, and began after the last time that it had to begin again.
 * 2. A person has set that state since.
 * 3. The final states of the others do not let it run: by its trigger rule, a branch, or the list of its map.
 *
 * An attempt must also have begun after the ends that its task depends on, unless an edit made one of those begin again
 * later, or the list of a map that it is in, and left the task as it was. Of two tasks that both have starts of their own, the
 * second must have begun after the first end of the first: the first may begin again by a start that the second does not have.
 */
import type { DagManifest, TriggerRule } from "@tradewind/sdk/manifest";
import { isEnd, judgeByRule, type ReferenceState, type Verdict } from "./reference-rules.ts";
import { keyOf, type Placed, ReferenceShape } from "./reference-shape.ts";

export interface EndedInstance extends Placed {
  readonly state: ReferenceState;
  /** What it ruled out, as a branch that succeeded. */
  readonly skip: readonly string[];
  /** The list of its map was read, and there was nothing to run over. */
  readonly isListEnd: boolean;
}

interface Record {
  begun: number;
  ended: number;
  /** The first end since it was cleared last. */
  firstEnded: number;
  marked: number;
  cleared: number;
  /** As the last attempt or the last person said. */
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

/** What was executed, marked and cleared, in the order in which it happened; instances are named by `keyOf`. */
export class Ledger {
  readonly #records = new Map<string, Record>();
  #now = 0;

  of({ path, taskId }: Placed): Readonly<Record> {
    const record = this.#of(keyOf(taskId, path));
    // What stood for it before its map was expanded was cleared on its behalf.
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

  /** It has to begin again. */
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

/** These rules may answer before all that is upstream has ended. */
const EARLY: readonly TriggerRule[] = ["always", "oneSuccess", "oneFailed", "oneDone"];

/** In words: what a run that ended as success has not done. */
export function unmetDemands(
  manifest: DagManifest,
  instances: readonly EndedInstance[],
  ledger: Ledger,
  /** It waits for a start of its own, and had none. */
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
      unmet.push(`${key} is ${i.state}, and has not run`);
  }
  return unmet;
}

/** What it depends on, and has ended since it began. */
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

/** When it, or the list of a map around it, had to begin again last: with another list, it may be an item that is new. */
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
