/**
 * The expected result of every instance of a program with maps: its state by the reference interpreter, its name, and its
 * output, computed in the simplest way from the scripts and the maps of the manifest.
 */
import type { DagManifest, MapManifest, MapSource, TaskManifest } from "@tradewind/sdk/manifest";
import { type Random, randomOf } from "../reference/random-dag.ts";
import {
  type ReferenceEvent,
  type ReferenceInstance,
  ReferenceRun,
} from "../reference/reference-interpreter.ts";
import { keyOf } from "../reference/reference-shape.ts";
import { labelOf, type MappedTask, mappedOutcome, resultOf, type Value } from "./mapped-dag.ts";

export interface ForetoldInstance {
  readonly taskId: string;
  readonly path: readonly number[];
  readonly state: string;
  readonly label: string;
  /** Set for a success. */
  readonly output: Value | undefined;
}

export interface Foretold {
  readonly run: "success" | "failed";
  readonly instances: readonly ForetoldInstance[];
}

/** Random orders that must all give the same result. */
const ORDERS = 6;

/** null: too few successes, too many instances, or the result depends on the order of events. */
export function foretellMapped(
  manifest: DagManifest,
  tasks: ReadonlyMap<string, MappedTask>,
  wanted: { readonly from: number; readonly to: number },
): Foretold | null {
  const values = new Values(manifest, tasks);
  const first = live(manifest, values, randomOf(0), wanted.to);
  // If every instance is skipped, there is nothing to check.
  if (first === null || first.filter(({ state }) => state === "success").length < wanted.from) return null;
  const asText = (instances: readonly ReferenceInstance[] | null) =>
    instances
      ?.map(({ taskId, path, state }) => `${keyOf(taskId, path)} ${state}`)
      .sort()
      .join();
  for (let order = 1; order < ORDERS; order++)
    if (asText(live(manifest, values, randomOf(order), wanted.to)) !== asText(first)) return null;
  const instances = first.map(({ taskId, path, state }) => {
    const isWhole = path.length === values.chain(taskId).length;
    return {
      taskId,
      path,
      state,
      label: isWhole ? values.label(taskId, path) : "",
      output: isWhole && state === "success" ? values.of(taskId, path) : undefined,
    };
  });
  return { run: endOf(manifest, first), instances };
}

function live(
  manifest: DagManifest,
  values: Values,
  random: Random,
  most: number,
): ReferenceInstance[] | null {
  const reference = new ReferenceRun(manifest);
  while (reference.end() === "running") {
    if (reference.instances().length > most) return null;
    const active = reference.instances().filter((i) => ACTIVE.has(i.state));
    const maps = reference.expandable();
    const chosen = random.below(active.length + maps.length);
    const map = maps[chosen - active.length];
    if (map) {
      const { length } = values.items(map.map, map.path);
      reference.happen({ what: "expand", ...map, length });
    } else reference.happen(next(active[chosen] as ReferenceInstance, values));
  }
  return [...reference.instances()];
}

const ACTIVE: ReadonlySet<string> = new Set(["scheduled", "queued", "running", "up_for_retry"]);

function next(one: ReferenceInstance, values: Values): ReferenceEvent {
  const of = keyOf(one.taskId, one.path);
  if (one.state === "scheduled") return { what: "queue", of };
  if (one.state === "queued") return { what: "start", of };
  if (one.state === "up_for_retry") return { what: "wake", of };
  const outcome = mappedOutcome(values.task(one.taskId), values.label(one.taskId, one.path), one.tries);
  if (outcome === "success") return { what: "succeed", of, skip: [] };
  if (outcome === "skip") return { what: "skip", of };
  return { what: "fail", of, retry: outcome === "failure" };
}

function endOf({ tasks }: DagManifest, instances: readonly ReferenceInstance[]): "success" | "failed" {
  const work = tasks.filter(({ role }) => role !== "teardown");
  const isLast = (id: string) => !work.some(({ upstream }) => upstream.includes(id));
  const isBad = ({ state }: ReferenceInstance) => state === "failed" || state === "upstream_failed";
  const deciding = new Set(work.map(({ taskId }) => taskId).filter(isLast));
  return instances.some((i) => isBad(i) && deciding.has(i.taskId)) ? "failed" : "success";
}

/** Outputs and items by position. Only successful instances have values. */
class Values {
  readonly #manifests: ReadonlyMap<string, TaskManifest>;
  readonly #maps: ReadonlyMap<string, MapManifest>;
  readonly #tasks: ReadonlyMap<string, MappedTask>;
  readonly #known = new Map<string, Value>();

  constructor({ tasks, maps = [] }: DagManifest, scripts: ReadonlyMap<string, MappedTask>) {
    this.#manifests = new Map(tasks.map((task) => [task.taskId, task]));
    this.#maps = new Map(maps.map((map) => [map.mapId, map]));
    this.#tasks = scripts;
  }

  task(taskId: string): MappedTask {
    return this.#tasks.get(taskId) as MappedTask;
  }

  /** The maps around a task, outermost first. */
  chain(taskId: string): string[] {
    return this.#chainOf(this.#manifests.get(taskId)?.map ?? null);
  }

  label(taskId: string, path: readonly number[]): string {
    return labelOf(
      this.chain(taskId).map((map, n) => this.items(map, path.slice(0, n))[path[n] as number] as Value),
    );
  }

  /** The items of the list of a map, within an item of the map around it. */
  items(mapId: string, path: readonly number[]): readonly Value[] {
    const { over, parent } = this.#maps.get(mapId) as MapManifest;
    return this.#source(over, this.#chainOf(parent), path);
  }

  of(taskId: string, path: readonly number[]): Value {
    const key = keyOf(taskId, path);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const task = this.task(taskId);
    const inputs = task.inputs.map((id) => this.#gather(id, this.chain(taskId), path));
    const value = resultOf(task, this.label(taskId, path), inputs);
    this.#known.set(key, value);
    return value;
  }

  #source(over: MapSource, chain: readonly string[], path: readonly number[]): readonly Value[] {
    switch (over.kind) {
      case "output":
        return this.#gather(over.taskId, chain, path) as readonly Value[];
      case "item":
      case "list":
        throw new Error(`no script has a map over ${over.kind}`);
      case "zip": {
        const [first = [], ...others] = over.of.map((each) => this.#source(each, chain, path));
        return first.map((item, n) => [item, ...others.map((list) => list[n] as Value)]);
      }
      case "cross":
        return over.of
          .map((each) => this.#source(each, chain, path))
          .reduce<readonly (readonly Value[])[]>(
            (rows, list) => rows.flatMap((row) => list.map((item) => [...row, item])),
            [[]],
          );
    }
  }

  /** Within shared maps, the value of the same item; for maps around the other task only, the list of all values. */
  #gather(taskId: string, chain: readonly string[], path: readonly number[]): Value {
    const own = this.chain(taskId);
    const differs = own.findIndex((map, n) => map !== chain[n]);
    const common = differs < 0 ? own.length : differs;
    const below = (at: readonly number[], rest: readonly string[]): Value => {
      const [map, ...deeper] = rest;
      if (map === undefined) return this.of(taskId, at);
      return this.items(map, at).map((_, n) => below([...at, n], deeper));
    };
    return below(path.slice(0, common), own.slice(common));
  }

  #chainOf(mapId: string | null): string[] {
    const map = mapId === null ? undefined : this.#maps.get(mapId);
    return map ? [...this.#chainOf(map.parent), map.mapId] : [];
  }
}
