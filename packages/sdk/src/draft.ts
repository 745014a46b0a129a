/**
 * A DAG while it is being built. One draft per `dag()` call; a `DraftBuilder` per scope (the DAG itself, each group)
 * writes into it. Nothing here runs user code except the build functions.
 */
import type { BranchChoice, DagBuilder } from "./builder.ts";
import { DagDefinitionError, naming, show } from "./errors.ts";
import { type Group, type Output, own, ownerOf, type Upstream } from "./handle.ts";
import type { GroupManifest } from "./manifest.ts";
import type { Operator } from "./operator.ts";
import { flag, knownOptions, text } from "./option-check.ts";
import type { TaskBody, TaskPlan, UserFunction } from "./plan.ts";
import { taskDrive } from "./task-drive.ts";
import {
  checkDefaults,
  checkTaskOptions,
  type RawOptions,
  taskCallbacks,
  taskSettings,
} from "./task-options.ts";
import { callAtDefinition } from "./waitable.ts";

/** What the scopes of one DAG share. */
export class Draft {
  readonly dagId: string;
  readonly tasks = new Map<string, TaskPlan>();
  readonly groups = new Map<string, GroupManifest>();
  readonly #members = new Map<string, TaskPlan[]>();

  constructor(dagId: string) {
    this.dagId = checkId(dagId, `dag ${show(dagId)}`);
  }

  put(task: TaskPlan): void {
    this.tasks.set(task.taskId, task);
    for (let group = task.group; group !== null; group = this.groups.get(group)!.parent) {
      const members = this.#members.get(group);
      if (members) members.push(task);
      else this.#members.set(group, [task]);
    }
  }

  /** The tasks of a group and of all groups inside it. */
  members(groupId: string): readonly TaskPlan[] {
    return this.#members.get(groupId) ?? [];
  }

  /** Direct downstream task ids, in order of definition. */
  downstream(): Map<string, string[]> {
    const edges = new Map<string, string[]>([...this.tasks.keys()].map((id) => [id, []]));
    for (const task of this.tasks.values()) {
      for (const upstream of task.upstream) edges.get(upstream)!.push(task.taskId);
    }
    return edges;
  }
}

type Scope = { readonly group: string | null; readonly defaults: readonly RawOptions[] };

/** The `d` of a build function. Its types are checked by {@link DagBuilder}; here everything may be wrong. */
export class DraftBuilder {
  readonly #draft: Draft;
  readonly #scope: Scope;
  #open = true;

  constructor(draft: Draft, scope: Scope) {
    this.#draft = draft;
    this.#scope = scope;
  }

  task(id: string, ...rest: unknown[]): Output<unknown> {
    const [options, run] = this.#optionsAndFunction(id, rest, "task");
    return this.#put(id, options, { kind: "task", run }, []);
  }

  branch(id: string, ...rest: unknown[]): Output<BranchChoice> {
    const [options, run] = this.#optionsAndFunction(id, rest, "branch");
    return this.#put(id, options, { kind: "branch", run }, []) as Output<BranchChoice>;
  }

  shortCircuit(id: string, ...rest: unknown[]): Output<unknown> {
    const [options, run] = this.#optionsAndFunction(id, rest, "shortCircuit");
    const respectRules = flag((options ?? {}) as RawOptions, "respectRules", this.#where(id));
    return this.#put(id, options, { kind: "shortCircuit", run, respectRules }, ["respectRules"]);
  }

  add(id: string, operator: unknown, options?: unknown): Output<unknown> {
    if (!isOperator(operator)) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${this.#where(id)}: d.add takes an instance of an Operator class, got ${show(operator)}; use d.task for a function`,
      );
    }
    return this.#put(id, options, { kind: "operator", operator }, []);
  }

  trigger(id: string, trigger: unknown, options?: unknown): Output<unknown> {
    if (typeof options === "object" && options !== null && "inputs" in options) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${this.#where(id)}: d.trigger takes no inputs, since no code of yours runs; use after, or ctx.until in a task`,
      );
    }
    const call = naming(this.#where(id), () => callAtDefinition(trigger));
    return this.#put(id, options, { kind: "trigger", call }, []);
  }

  group(id: string, ...rest: unknown[]): Group {
    const [given, build] = this.#optionsAndFunction(id, rest, "group");
    const where = `${this.#dagName()}, group ${show(this.#fullId(id))}`;
    const options = knownOptions(given, ["after", "defaults", "docs"], where);
    const groupId = this.#claim(id, where);
    const after = this.#upstreamIds(options["after"], where);
    const defaults = [...this.#scope.defaults, checkDefaults(options["defaults"], where)];
    this.#draft.groups.set(groupId, {
      groupId,
      parent: this.#scope.group,
      docs: text(options, "docs", where),
    });
    const inner = new DraftBuilder(this.#draft, { group: groupId, defaults });
    const result = inner.build(build as unknown as (g: DraftBuilder) => unknown, where);
    const members = this.#draft.members(groupId);
    if (members.length === 0) {
      throw new DagDefinitionError("TW_EMPTY_GROUP", `${where} has no tasks; add one or remove the group`);
    }
    const inside = new Set(members.map((task) => task.taskId));
    for (const task of members) {
      if (![...task.upstream].some((id) => inside.has(id))) for (const id of after) task.upstream.add(id);
    }
    return own({ kind: "group" as const, dagId: this.#draft.dagId, groupId, result }, this.#draft);
  }

  /** Runs a build function on this builder, then closes it: a task added later would be in no manifest. */
  build<T>(build: (d: DraftBuilder) => T, where: string): T {
    const result = build(this);
    this.#open = false;
    if (typeof (result as PromiseLike<unknown> | undefined)?.then === "function") {
      throw new DagDefinitionError(
        "TW_ASYNC_BUILD",
        `${where}: the build function must not be async; fetch data inside a task instead`,
      );
    }
    return result;
  }

  #put(id: string, given: unknown, body: TaskBody, extra: readonly string[]): Output<unknown> {
    const where = this.#where(id);
    const options = checkTaskOptions(given, extra, where);
    const taskId = this.#claim(id, where);
    const inputs = this.#inputs(options["inputs"], where);
    const layers = [...this.#scope.defaults, options];
    const drive = taskDrive(layers, {
      where,
      hasCode: body.kind !== "trigger",
      taskOf: (handle) => this.#ownTask(handle, where),
    });
    this.#draft.put({
      taskId,
      group: this.#scope.group,
      body,
      settings: taskSettings(layers, where),
      drive,
      callbacks: taskCallbacks(layers),
      inputs,
      upstream: new Set([
        ...Object.values(inputs).map((input) => input.taskId),
        ...this.#upstreamIds(options["after"], where),
      ]),
    });
    return own({ kind: "output" as const, dagId: this.#draft.dagId, taskId }, this.#draft);
  }

  #optionsAndFunction(id: string, rest: unknown[], method: string): [options: unknown, run: UserFunction] {
    const [options, run] = rest.length > 1 ? rest : [undefined, rest[0]];
    if (typeof run === "function") return [options, run as UserFunction];
    throw new DagDefinitionError(
      "TW_BAD_OPTION",
      `${this.#where(id)}: d.${method} takes (id, function) or (id, options, function), got ${show(run)} for the function`,
    );
  }

  /** The full id, reserved: tasks and groups share one namespace. */
  #claim(id: string, where: string): string {
    if (!this.#open) {
      throw new DagDefinitionError("TW_BUILD_CLOSED", `${where}: added after its build function had ended`);
    }
    const fullId = checkId(this.#fullId(checkId(id, where)), where);
    if (this.#draft.tasks.has(fullId) || this.#draft.groups.has(fullId)) {
      throw new DagDefinitionError(
        "TW_DUPLICATE_ID",
        `${where}: the id is already taken; ids are unique within a DAG`,
      );
    }
    return fullId;
  }

  #inputs(given: unknown, where: string): Record<string, { taskId: string }> {
    if (given === undefined) return {};
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${where}: inputs must be an object of handles, got ${show(given)}`,
      );
    }
    return Object.fromEntries(
      Object.entries(given).map(([name, handle]) => {
        const { kind } = this.#own(handle, `${where}: input "${name}"`);
        if (kind === "output") return [name, { taskId: (handle as Output<unknown>).taskId }];
        throw new DagDefinitionError(
          "TW_BAD_HANDLE",
          `${where}: input "${name}" is a group, which has no output; use after`,
        );
      }),
    );
  }

  /** Coming after a group means coming after those of its tasks that nothing in the group comes after. */
  #upstreamIds(after: unknown, where: string): string[] {
    if (after === undefined) return [];
    return (Array.isArray(after) ? after : [after]).flatMap((given) => {
      const handle = this.#own(given, `${where}: after`);
      if (handle.kind === "output") return [handle.taskId];
      const members = this.#draft.members(handle.groupId);
      const followed = new Set(members.flatMap((task) => [...task.upstream]));
      return members.map((task) => task.taskId).filter((id) => !followed.has(id));
    });
  }

  /** Of a handle in a condition. */
  #ownTask(handle: unknown, where: string): string {
    // What looks like a handle of a task and is ours is one.
    return (this.#own(handle, `${where}: on`) as Output<unknown>).taskId;
  }

  #own(handle: unknown, where: string): Upstream {
    const owner = ownerOf(handle);
    if (owner === this.#draft) return handle as Upstream;
    if (owner !== undefined) {
      throw new DagDefinitionError(
        "TW_FOREIGN_HANDLE",
        `${where}: the handle belongs to dag ${show((handle as Upstream).dagId)}; a task can only depend on tasks of its own DAG`,
      );
    }
    throw new DagDefinitionError(
      "TW_BAD_HANDLE",
      `${where}: ${show(handle)} is not a handle; give what d.task, d.add or d.group returned`,
    );
  }

  #fullId(id: string): string {
    return this.#scope.group === null ? id : `${this.#scope.group}.${id}`;
  }

  #dagName(): string {
    return `dag ${show(this.#draft.dagId)}`;
  }

  #where(id: string): string {
    return `${this.#dagName()}, task ${typeof id === "string" ? show(this.#fullId(id)) : show(id)}`;
  }
}

/** Compile-time proof that the class has every method of the public builder. */
true satisfies keyof DagBuilder extends keyof DraftBuilder ? true : false;

/** By shape, not by class: an operator may come from a package with its own copy of the SDK. */
function isOperator(value: unknown): value is Operator<unknown, unknown> {
  return typeof value === "object" && value !== null && typeof (value as Operator).execute === "function";
}

/** Ids become folders and parts of URLs, where "." and ".." mean something else. */
function checkId(id: unknown, where: string): string {
  if (typeof id === "string" && /^(?!\.+$)[A-Za-z0-9_.-]{1,250}$/.test(id)) return id;
  throw new DagDefinitionError(
    "TW_BAD_ID",
    `${where}: an id has 1 to 250 of the characters A-Z a-z 0-9 _ . - and is not only dots, got ${show(id)}`,
  );
}
