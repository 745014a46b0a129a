/**
 * A DAG under construction. Each `dag()` call has one draft; a `DraftBuilder` per scope (the DAG and each group) writes
 * to it. Build functions are the only user code that runs here.
 */

import { DagDefinitionError, naming, show } from "../check/errors.ts";
import { checkId } from "../check/name.ts";
import { flag, wholeOrNull } from "../check/option-check.ts";
import type { InputSource, MapManifest } from "../manifest.ts";
import { isOperator } from "../trigger/operator.ts";
import { callAtDefinition } from "../trigger/waitable.ts";
import { approvalTask } from "./approval.ts";
import type { BranchChoice, DagBuilder } from "./builder.ts";
import { checkGroupOptions, groupPlan } from "./group-options.ts";
import { type Group, type Output, own, ownerOf, sourceOf } from "./handle.ts";
import { HandleCheck } from "./handle-check.ts";
import { checkEnv } from "./params/env.ts";
import {
  type GroupPlan,
  ITEM,
  type MappedFunction,
  RESOURCE,
  type TaskBody,
  type TaskPlan,
  type UserFunction,
} from "./plan.ts";
import { lastOfScope } from "./setup-scope.ts";
import { mapDagTask, subDagTask } from "./sub-dag.ts";
import { taskDrive } from "./task-drive.ts";
import {
  checkDefaults,
  checkTaskOptions,
  type RawOptions,
  taskCallbacks,
  taskSettings,
} from "./task-options.ts";

/** The state that all scopes of one DAG share. */
export class Draft {
  readonly dagId: string;
  readonly tasks = new Map<string, TaskPlan>();
  readonly groups = new Map<string, GroupPlan>();
  /** Outer maps before inner maps. */
  readonly maps = new Map<string, MapManifest>();
  readonly #members = new Map<string, TaskPlan[]>();

  constructor(dagId: string) {
    this.dagId = checkId(dagId, `dag ${show(dagId)}`);
  }

  put(task: TaskPlan): void {
    this.tasks.set(task.taskId, task);
    for (let group = task.group; group !== null; group = this.groups.get(group)!.manifest.parent) {
      const members = this.#members.get(group);
      if (members) members.push(task);
      else this.#members.set(group, [task]);
    }
  }

  /** The tasks of a group and of all groups inside it. */
  members(groupId: string): readonly TaskPlan[] {
    return this.#members.get(groupId) ?? [];
  }

  /** The direct downstream task ids, in the order of definition. */
  downstream(): Map<string, string[]> {
    const edges = new Map<string, string[]>([...this.tasks.keys()].map((id) => [id, []]));
    for (const task of this.tasks.values()) {
      for (const upstream of task.upstream) edges.get(upstream)!.push(task.taskId);
    }
    return edges;
  }
}

/** The group and the map to which a builder adds its tasks. */
interface Scope {
  readonly group: string | null;
  readonly map: string | null;
  readonly defaults: readonly RawOptions[];
}

/** The `d` of a build function. {@link DagBuilder} has its types; here any argument may be invalid. */
export class DraftBuilder {
  readonly #draft: Draft;
  readonly #scope: Scope;
  readonly #handles: HandleCheck;
  #open = true;

  constructor(draft: Draft, scope: Scope) {
    this.#draft = draft;
    this.#scope = scope;
    this.#handles = new HandleCheck(draft, scope.map);
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

  operator(id: string, operator: unknown, options?: unknown): Output<unknown> {
    if (!isOperator(operator)) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${this.#where(id)}: d.operator takes an instance of an Operator class, got ${show(operator)}; use d.task for a function`,
      );
    }
    return this.#put(id, options, { kind: "operator", operator }, []);
  }

  dag(id: string, dag: unknown, given?: unknown): Output<unknown> {
    const { body, options } = subDagTask(dag, given, this.#where(id));
    return this.#put(id, options, body, []);
  }

  mapDag(id: string, dag: unknown, given?: unknown): Output<unknown> {
    const { body, options } = mapDagTask(dag, given, this.#where(id));
    return this.#putMapped(id, options, body);
  }

  approval(id: string, given?: unknown): Output<unknown> {
    const { body, options } = approvalTask(given, this.#fullId(id), this.#where(id));
    return this.#put(id, options, body, []);
  }

  latestOnly(id: string, options?: unknown): Output<unknown> {
    return this.#put(id, options, { kind: "latestOnly" }, []);
  }

  map(id: string, ...rest: unknown[]): Output<unknown> {
    const [options, run] = this.#optionsAndFunction(id, rest, "map");
    return this.#putMapped(id, options, { kind: "map", run: run as unknown as MappedFunction });
  }

  mapOperator(id: string, ...rest: unknown[]): Output<unknown> {
    const [options, make] = this.#optionsAndFunction(id, rest, "mapOperator");
    return this.#putMapped(id, options, { kind: "mapOperator", make: make as unknown as MappedFunction });
  }

  setup(id: string, ...rest: unknown[]): Output<unknown> {
    const [options, run] = this.#optionsAndFunction(id, rest, "setup");
    return this.#put(id, options, { kind: "task", run }, [], "setup");
  }

  teardown(id: string, ...rest: unknown[]): Output<unknown> {
    const [given, run] = this.#optionsAndFunction(id, rest, "teardown");
    const where = this.#where(id);
    const { of, failsRun, ...options } = checkTaskOptions(given, ["of", "failsRun"], where);
    const setup = this.#handles.setup(of, where);
    if (Object.hasOwn((options["inputs"] as object | undefined) ?? {}, RESOURCE)) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${where}: an input of a teardown cannot be named "${RESOURCE}": that name holds the output of its setup; rename the input`,
      );
    }
    const body = {
      kind: "teardown" as const,
      run: run as unknown as MappedFunction,
      of: setup,
      failsRun: flag({ failsRun }, "failsRun", where),
    };
    const rule = options["rule"] ?? "allDoneSetupSuccess";
    const taskId = this.#claim(id, where);
    const scope = lastOfScope(this.#draft, setup);
    const map = this.#scope.map;
    const output = this.#place(taskId, { body, options: { ...options, rule }, where, map, role: "teardown" });
    for (const each of scope) this.#draft.tasks.get(taskId)!.upstream.add(each);
    return output;
  }

  trigger(id: string, trigger: unknown, options?: unknown): Output<unknown> {
    if (typeof options === "object" && options !== null && "inputs" in options) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${this.#where(id)}: d.trigger takes no inputs, because it runs no code; use after, or ctx.until in a task`,
      );
    }
    const call = naming(this.#where(id), () => callAtDefinition(trigger));
    return this.#put(id, options, { kind: "trigger", call }, []);
  }

  group(id: string, ...rest: unknown[]): Group {
    const [given, build] = this.#optionsAndFunction(id, rest, "group");
    const where = this.#groupName(id);
    const options = checkGroupOptions(given, [], where);
    return this.#build(id, { options, where, map: this.#scope.map }, (inner) =>
      inner.build(build as unknown as (g: DraftBuilder) => unknown, where),
    );
  }

  mapGroup(id: string, ...rest: unknown[]): Group {
    const [given, build] = this.#optionsAndFunction(id, rest, "mapGroup");
    const where = this.#groupName(id);
    const options = checkGroupOptions(given, ["label", "limit", "over"], where);
    const mapId = this.#fullId(id);
    const limit = wholeOrNull(options, "limit", where);
    const map = this.#handles.map(options, { mapId, limit, where });
    const item = own({ kind: "output" as const, dagId: this.#draft.dagId, taskId: mapId }, this.#draft, {
      source: { item: mapId },
      map: mapId,
    });
    return this.#build(id, { options, where, map: mapId }, (inner) => {
      this.#draft.maps.set(mapId, map);
      const result = inner.build(
        (g) => (build as unknown as (g: DraftBuilder, item: unknown) => unknown)(g, item),
        where,
      );
      return this.#gathered(result);
    });
  }

  #build(
    id: string,
    {
      map,
      options,
      where,
    }: { readonly map: string | null; readonly options: RawOptions; readonly where: string },
    build: (inner: DraftBuilder) => unknown,
  ): Group {
    const groupId = this.#claim(id, where);
    const after = this.#handles.upstreamIds(options["after"], where);
    const defaults = [...this.#scope.defaults, checkDefaults(options["defaults"], where)];
    const plan = groupPlan(options, { groupId, parent: this.#scope.group, map, where });
    this.#draft.groups.set(groupId, plan);
    const result = build(new DraftBuilder(this.#draft, { group: groupId, map, defaults }));
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

  /** The outputs of a mapped group as seen from outside: lists. */
  #gathered(result: unknown): unknown {
    const source = sourceOf(result);
    if (source && "taskId" in source)
      return own({ kind: "output" as const, dagId: this.#draft.dagId, taskId: source.taskId }, this.#draft, {
        source,
        map: this.#scope.map,
      });
    if (Array.isArray(result)) return result.map((each) => this.#gathered(each));
    if (Object.getPrototypeOf(result ?? 0) !== Object.prototype || ownerOf(result) !== undefined)
      return result;
    return Object.fromEntries(
      Object.entries(result as object).map(([name, each]) => [name, this.#gathered(each)]),
    );
  }

  /** Runs a build function on this builder and closes it: a task added later would be missing from the manifest. */
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

  #put(
    id: string,
    given: unknown,
    body: TaskBody,
    extra: readonly string[],
    role: TaskPlan["role"] = "work",
  ): Output<unknown> {
    const where = this.#where(id);
    const options = checkTaskOptions(given, extra, where);
    return this.#place(this.#claim(id, where), { body, options, where, map: this.#scope.map, role });
  }

  /** A map of a single task, with the item as an additional input. */
  #putMapped(id: string, given: unknown, body: TaskBody): Output<unknown> {
    const where = this.#where(id);
    const { over, label, limit, ...options } = checkTaskOptions(given, ["over", "label", "limit"], where);
    if (Object.hasOwn((options["inputs"] as object | undefined) ?? {}, ITEM)) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${where}: an input of a mapped task cannot be named "${ITEM}": that name holds the item; rename the input`,
      );
    }
    const mapId = this.#claim(id, where);
    const most = wholeOrNull({ limit }, "limit", where);
    // A task that waits for a run of its own holds no slot: count such items until they have ended.
    const [items, active] = "dag" in body ? [most, null] : [null, most];
    this.#draft.maps.set(mapId, this.#handles.map({ over, label }, { mapId, limit: items, where }));
    const own = active ? { ...options, maxActivePerRun: Math.min(active, mostOf(options)) } : options;
    return this.#place(mapId, { body, options: own, where, map: mapId, role: "work" });
  }

  #place(
    taskId: string,
    task: {
      readonly body: TaskBody;
      readonly options: RawOptions;
      readonly where: string;
      readonly map: string | null;
      readonly role: TaskPlan["role"];
    },
  ): Output<unknown> {
    const { body, map, options, role, where } = task;
    const isMapped = body.kind === "map" || body.kind === "mapOperator";
    const given = this.#handles.inputs(options["inputs"], where);
    const inputs: Record<string, InputSource> = {
      ...(isMapped && { [ITEM]: { item: taskId } }),
      ...(body.kind === "teardown" && { [RESOURCE]: { taskId: body.of } }),
      ...given,
    };
    const layers = [...this.#scope.defaults, options];
    const drive = taskDrive(layers, {
      where,
      hasCode: body.kind !== "trigger",
      isMapped: map !== null,
      taskOf: (handle) => this.#handles.ownTask(handle, where),
    });
    this.#draft.put({
      taskId,
      group: this.#scope.group,
      body,
      role,
      settings: taskSettings(layers, where),
      drive,
      callbacks: taskCallbacks(layers, where),
      env: checkEnv(options["env"], where),
      inputs,
      map,
      upstream: new Set([
        ...Object.values(inputs).flatMap((input) => this.#handles.tasksOf(input)),
        ...this.#handles.upstreamIds(options["after"], where),
      ]),
    });
    // Outside of its map, the output is a list; inside a mapped group, each item has its own.
    const output = { kind: "output" as const, dagId: this.#draft.dagId, taskId };
    return own(output, this.#draft, { source: { taskId }, map: this.#scope.map });
  }

  #optionsAndFunction(id: string, rest: unknown[], method: string): [options: unknown, run: UserFunction] {
    const [options, run] = rest.length > 1 ? rest : [undefined, rest[0]];
    if (typeof run === "function") return [options, run as UserFunction];
    throw new DagDefinitionError(
      "TW_BAD_OPTION",
      `${this.#where(id)}: d.${method} takes (id, function) or (id, options, function), got ${show(run)} for the function`,
    );
  }

  /** Reserves the full id: tasks and groups share one namespace. */
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

  #groupName(id: string): string {
    return `${this.#dagName()}, group ${show(this.#fullId(id))}`;
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

/** Checks at compile time that the class has every method of the public builder. */
true satisfies keyof DagBuilder extends keyof DraftBuilder ? true : false;

function mostOf({ maxActivePerRun: most }: RawOptions): number {
  return typeof most === "number" ? most : Number.POSITIVE_INFINITY;
}
