/**
 * Seeded random programs with maps for the fault tests: over one list, two combined lists, or the results of a mapped task;
 * mapped groups, nested maps, setups and teardowns in and around them. Each has the expected result of every instance.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { PROGRAM } from "@tradewind/sdk/program";
import { type Random, randomOf } from "../reference/random-dag.ts";
import { type Foretold, foretellMapped } from "./foretold.ts";
import {
  type MappedDag,
  type MappedGroup,
  type MappedOver,
  type MappedStep,
  type MappedTask,
  mappedDag,
} from "./mapped-dag.ts";
import { POOLS } from "./programs.ts";

export interface MappedProgram {
  readonly script: MappedDag;
  readonly manifest: DagManifest;
  readonly tasks: ReadonlyMap<string, MappedTask>;
  readonly foretold: Foretold;
  /** Its task processes may be killed: each try succeeds, and there is always another. */
  readonly isSturdy: boolean;
}

/** Larger programs would outlast the storm; smaller ones show nothing. */
const LEAST = 6;
const MOST = 26;

/** The possible faults of a program: never both, because for a task that sees a failure and a skip the first one counts. */
const MOODS = [
  { failures: 0.12, skips: 0, least: 1 },
  { failures: 0, skips: 0.15, least: 0 },
] as const;

export function mappedPrograms(seed: number, count: number): MappedProgram[] {
  return take(seed * 100_000 + 70_000, count, (at, n) => {
    const mood = MOODS[n % MOODS.length] as Mood;
    return programOf(new Writer(`mapped_${at}`, randomOf(at), mood).write(), false);
  });
}

/** Every try succeeds and takes a while, as a target for kills. */
export function sturdyMappedPrograms(seed: number, count: number): MappedProgram[] {
  return take(seed * 100_000 + 90_000, count, (at, n) => {
    const mood = { failures: 0, skips: 0, least: 1, isSturdy: true };
    return programOf(new Writer(`sturdy_mapped_${n}`, randomOf(at), mood).write(), true);
  });
}

function take(
  from: number,
  count: number,
  make: (at: number, n: number) => MappedProgram | null,
): MappedProgram[] {
  const found: MappedProgram[] = [];
  for (let at = from; found.length < count; at++) {
    const program = make(at, found.length);
    if (program) found.push(program);
  }
  return found;
}

/** null: too small, too large, or its result depends on the order of events. */
function programOf(script: MappedDag, isSturdy: boolean): MappedProgram | null {
  const manifest = mappedDag(script)[PROGRAM].describe();
  const tasks = new Map(script.steps.flatMap(tasksOf).map((task) => [task.id, task]));
  const foretold = foretellMapped(manifest, tasks, { from: LEAST, to: MOST });
  return foretold && { script, manifest, tasks, foretold, isSturdy };
}

function tasksOf(step: MappedStep): MappedTask[] {
  return step.kind === "group" ? step.steps.flatMap(tasksOf) : [step];
}

interface Mood {
  readonly failures: number;
  readonly skips: number;
  readonly least: number;
  readonly isSturdy?: boolean;
}

/** The tasks that a writer may refer to. */
interface Scope {
  /** Full ids of tasks; lists are separate; pairs have the same length. */
  readonly tasks: string[];
  readonly lists: string[];
  readonly twins: (readonly [string, string])[];
  readonly prefix: string;
  readonly depth: number;
}

class Writer {
  readonly #id: string;
  readonly #random: Random;
  readonly #mood: Mood;
  #count = 0;

  constructor(id: string, random: Random, mood: Mood) {
    this.#id = id;
    this.#random = random;
    this.#mood = mood;
  }

  write(): MappedDag {
    const scope: Scope = { tasks: [], lists: [], twins: [], prefix: "", depth: 0 };
    const steps: MappedStep[] = [this.#list(scope)];
    for (let units = 2 + this.#random.below(2); units > 0; units--) steps.push(...this.#unit(scope));
    steps.push(this.#gather(scope));
    return { id: this.#id, steps };
  }

  #unit(scope: Scope): MappedStep[] {
    const dice = this.#random.below(10);
    if (dice < 2) return [this.#list(scope), this.#map(scope)];
    if (dice < 5) return [this.#map(scope), this.#gather(scope)];
    if (dice < 6) return this.#scoped(scope, () => this.#map(scope));
    if (scope.depth >= 2) return [this.#map(scope)];
    return [this.#group(scope), this.#gather(scope)];
  }

  #group(scope: Scope): MappedGroup {
    const id = this.#name("g", scope);
    const over = this.#over(scope);
    const inner: Scope = {
      tasks: [...scope.tasks],
      lists: [...scope.lists],
      twins: [...scope.twins],
      prefix: `${id}.`,
      depth: scope.depth + 1,
    };
    const steps: MappedStep[] = [];
    const before = inner.tasks.length;
    const body = () => {
      if (this.#random.chance(0.5)) steps.push(this.#list(inner), ...this.#unit(inner));
      else steps.push(this.#task(inner), this.#task(inner));
    };
    if (this.#random.chance(0.4)) steps.push(...this.#scoped(inner, () => this.#task(inner)));
    else body();
    scope.tasks.push(...inner.tasks.slice(before));
    return {
      id,
      kind: "group",
      over,
      limit: this.#random.chance(0.3) ? 1 + this.#random.below(2) : null,
      steps,
    };
  }

  /** A setup, a task in its scope, and the teardown. */
  #scoped(scope: Scope, within: () => MappedTask): MappedStep[] {
    const setup = this.#make("setup", scope, { failures: this.#mood.failures / 2 });
    const work = within();
    const teardown = this.#make("teardown", scope, { of: setup.id, after: [], inputs: [] });
    // No task waits for it: tasks after a group do not, either.
    scope.tasks.pop();
    const rule = "allDoneSetupSuccess";
    return [
      setup,
      { ...work, after: [...new Set([...work.after, setup.id])] },
      { ...teardown, options: { ...teardown.options, rule } },
    ];
  }

  #list(scope: Scope): MappedTask {
    const list = this.#make("list", scope, {
      failures: this.#mood.failures / 3,
      skips: this.#mood.skips / 3,
    });
    scope.lists.push(list.id);
    return list;
  }

  #map(scope: Scope): MappedTask {
    const over = this.#over(scope);
    const map = this.#make("map", scope, { over });
    if (over.lists.length === 1) scope.twins.push([over.lists[0] as string, map.id]);
    scope.lists.push(map.id);
    return map;
  }

  /** Uses the results of an earlier task, mostly a mapped one. */
  #gather(scope: Scope): MappedTask {
    return this.#make("task", scope, { inputs: [scope.tasks.at(-1) as string] });
  }

  #task(scope: Scope): MappedTask {
    return this.#make("task", scope, {});
  }

  #over(scope: Scope): MappedOver {
    const { lists, twins } = scope;
    if (twins.length > 0 && this.#random.chance(0.3)) return { lists: this.#random.one(twins), join: "zip" };
    const one = this.#random.one(lists);
    if (this.#random.chance(0.7)) return { lists: [one], join: "cross" };
    return { lists: [one, this.#random.one(lists)], join: "cross" };
  }

  #make(kind: MappedTask["kind"], scope: Scope, facts: Partial<MappedTask>): MappedTask {
    const random = this.#random;
    const { failures, skips, least, isSturdy = false } = this.#mood;
    const some = scope.tasks.filter(() => random.chance(0.8 / Math.max(1, scope.tasks.length)));
    const pool = random.chance(0.7) ? "default_pool" : random.one(Object.keys(POOLS));
    const task: MappedTask = {
      id: this.#name("t", scope),
      kind,
      after: some,
      inputs: [],
      salt: random.below(1_000_000),
      failures,
      skips,
      least,
      workMs: isSturdy || random.chance(0.3) ? 100 + random.below(200) : random.below(40),
      ...facts,
      options: {
        rule: "allSuccess",
        retries: isSturdy ? 50 : random.below(3),
        retryDelay: 20 + random.below(100),
        pool,
        ...(random.chance(0.1) ? { maxActivePerRun: 1 + random.below(2) } : {}),
      },
    };
    scope.tasks.push(task.id);
    // A task without data inputs may have another rule.
    const isFree = kind === "task" && task.inputs.length === 0 && scope.depth === 0;
    const rule = isFree && random.chance(0.5) ? random.one(RULES) : "allSuccess";
    return { ...task, options: { ...task.options, rule } };
  }

  #name(letter: string, { prefix }: Scope): string {
    return `${prefix}${letter}${this.#count++}`;
  }
}

const RULES = ["allDone", "noneFailed", "noneFailedMinOneSuccess"] as const;
