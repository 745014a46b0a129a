/**
 * A DAG with maps, built from a script with the real SDK; scripted-dag.ts builds those without maps. An instance is
 * identified by its items, not by its index: in nested maps the index depends on the order of expansion. The outcome of a
 * try is a function of (task, items, try) alone, and its output a function of all inputs, in their order.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AnyOutput,
  cross,
  type Dag,
  type DagBuilder,
  dag,
  type Output,
  type TaskContext,
  zip,
} from "tradewind";
import { randomOf, type TryOutcome } from "../reference/random-dag.ts";
import { record } from "./ledger-note.ts";
import { endScripted } from "./scripted-dag.ts";

/** The source of a map: one list, or two combined. Tasks by their full ids. */
export interface MappedOver {
  readonly lists: readonly string[];
  readonly join: "zip" | "cross";
}

export interface MappedTask {
  readonly id: string;
  /** "list": its output is the source of maps. */
  readonly kind: "task" | "list" | "map" | "setup" | "teardown";
  readonly over?: MappedOver;
  readonly after: readonly string[];
  readonly inputs: readonly string[];
  /** For a teardown: its setup. */
  readonly of?: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly salt: number;
  /** The probabilities that a try fails and that it skips. */
  readonly failures: number;
  readonly skips: number;
  /** For a list: its minimum length; up to three more items, depending on what it runs for. */
  readonly least: number;
  readonly workMs: number;
}

export interface MappedGroup {
  readonly id: string;
  readonly kind: "group";
  readonly over: MappedOver;
  readonly limit: number | null;
  readonly steps: readonly MappedStep[];
}

export type MappedStep = MappedTask | MappedGroup;

export interface MappedDag {
  readonly id: string;
  readonly steps: readonly MappedStep[];
}

export type Value = string | number | readonly Value[];

export function mappedDag(script: MappedDag): Dag {
  return dag(script.id, { maxActiveRuns: 64 }, (d) => {
    build(d, script.steps, { handles: new Map(), items: [] });
  });
}

interface Around {
  readonly handles: Map<string, AnyOutput>;
  /** The items of the enclosing groups, outermost first. */
  readonly items: readonly AnyOutput[];
}

/** Returns all created tasks, by full id. */
function build(d: DagBuilder, steps: readonly MappedStep[], around: Around): Record<string, AnyOutput> {
  const made: Record<string, AnyOutput> = {};
  for (const step of steps)
    Object.assign(
      made,
      step.kind === "group" ? addGroup(d, step, around) : { [step.id]: addTask(d, step, around) },
    );
  return made;

  function addGroup(
    into: DagBuilder,
    group: MappedGroup,
    { handles, items }: Around,
  ): Record<string, AnyOutput> {
    const options = {
      over: overOf(group.over, handles),
      ...(group.limit !== null && { limit: group.limit }),
    };
    const { result } = into.mapGroup(local(group.id), options as never, (g, item) =>
      build(g, group.steps, { handles: new Map(handles), items: [...items, item as AnyOutput] }),
    );
    const lists = result as unknown as Record<string, AnyOutput>;
    for (const [id, list] of Object.entries(lists)) handles.set(id, list);
    return lists;
  }
}

function addTask(d: DagBuilder, task: MappedTask, { handles, items }: Around): AnyOutput {
  const handle = (id: string) => handles.get(id) as AnyOutput;
  const options = {
    ...task.options,
    after: task.after.filter((id) => !task.inputs.includes(id)).map(handle),
    inputs: Object.fromEntries([
      ...items.map((item, n) => [`item${n}`, item]),
      ...task.inputs.map((id, n) => [`input${n}`, handle(id)]),
    ]),
  } as object;
  const run = (given: unknown, ctx: TaskContext, own: readonly Value[] = []) => {
    // With another rule than `allSuccess`, as for a teardown, an input comes with the state of its source.
    type Given = Value | { readonly value: Value };
    const all = Object.values(given as Record<string, Given>).map((each) =>
      typeof each === "object" && "value" in each ? each.value : (each as Value),
    );
    return perform(
      task,
      { items: [...all.slice(0, items.length), ...own], inputs: all.slice(items.length) },
      ctx,
    );
  };
  const name = local(task.id);
  const output = () => {
    switch (task.kind) {
      case "map": {
        const over = overOf(task.over as MappedOver, handles);
        return d.map(
          name,
          { ...options, over } as never,
          (item, inputs, ctx) => run(inputs, ctx, [item as Value]) as Promise<number>,
        );
      }
      case "setup":
        return d.setup(name, options, run as never);
      case "teardown":
        return d.teardown(
          name,
          { ...options, of: handle(task.of as string) } as never,
          (_, inputs, ctx) => run(inputs, ctx) as Promise<number>,
        );
      default:
        return d.task(name, options, run as never);
    }
  };
  const made = output() as AnyOutput;
  handles.set(task.id, made);
  return made;
}

function overOf({ lists, join }: MappedOver, handles: ReadonlyMap<string, AnyOutput>): unknown {
  const [first, second] = lists.map((id) => handles.get(id) as Output<string[]>) as [
    Output<string[]>,
    Output<string[]>?,
  ];
  if (second === undefined) return first;
  return join === "zip" ? zip(first, second) : cross(first, second);
}

function local(id: string): string {
  return id.slice(id.lastIndexOf(".") + 1);
}

async function perform(
  task: MappedTask,
  { items, inputs }: { readonly items: readonly Value[]; readonly inputs: readonly Value[] },
  ctx: TaskContext,
): Promise<unknown> {
  const label = labelOf(items);
  const outcome = mappedOutcome(task, label, ctx.tryNumber);
  record(ctx, { event: "start", outcome, label });
  await sleep(task.workMs);
  record(ctx, { event: "end", outcome, label });
  return endScripted(outcome, () => resultOf(task, label, inputs));
}

/** The name of an instance: all items that it runs for. */
export function labelOf(items: readonly Value[]): string {
  return items.map((item) => String(item)).join("/");
}

export function mappedOutcome(task: MappedTask, label: string, tryNumber: number): TryOutcome {
  const random = randomOf(fold([task.salt, label, tryNumber]));
  if (random.chance(task.failures)) return random.chance(0.8) ? "failure" : "failureForGood";
  return random.chance(task.skips) ? "skip" : "success";
}

/** The output of a success: a list of unique names, or a number that depends on every input and on their order. */
export function resultOf(task: MappedTask, label: string, inputs: readonly Value[]): Value {
  if (task.kind !== "list") return fold([task.salt, label, ...inputs]);
  const length = task.least + (fold([task.salt, label]) % 3);
  return Array.from({ length }, (_, n) => `${local(task.id)}${n}${label && `(${label})`}`);
}

function fold(value: Value): number {
  if (typeof value === "number") return value;
  const parts = typeof value === "string" ? [...value].map((letter) => letter.charCodeAt(0)) : value;
  return parts.reduce<number>((sum, part, n) => (sum * 31 + fold(part) * (n + 7) + 1) % 1_000_003, 17);
}
