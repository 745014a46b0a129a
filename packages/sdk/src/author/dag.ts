import { collectErrors } from "../check/definition-errors.ts";
import { DagDefinitionError, show } from "../check/errors.ts";
import type { SchemaInput, SchemaOutput, StandardSchemaV1 } from "../check/standard-schema.ts";
import type { DagManifest } from "../manifest.ts";
import { runAttempt } from "../runtime/attempt.ts";
import { type DueCall, PROGRAM, type Program } from "../runtime/program.ts";
import type { EventParams, SignalParams } from "../schedule/schedule.ts";
import { runTimetable, type Timetable } from "../schedule/timetable.ts";
import { runReaction } from "../signal/reaction.ts";
import type { DagBuilder } from "./builder.ts";
import { runCallback } from "./callback.ts";
import {
  checkDagOptions,
  type DagOptions,
  type EventDagOptions,
  type NoSchema,
  type SignalDagOptions,
} from "./dag-options.ts";
import { type ResultOf, resultOf } from "./dag-result.ts";
import { describe } from "./describe.ts";
import { Draft, DraftBuilder } from "./draft.ts";
import { checkGroups } from "./group-options.ts";
import type { DagPlan } from "./plan.ts";

declare const CONF: unique symbol;
declare const RESULT: unique symbol;

/**
 * A DAG: a frozen value that a DAG file exports.
 * @example const hello: Dag = dag("hello", (d) => void d.task("greet", () => "Hello!"));
 */
export interface Dag<Conf = unknown, Result = unknown> {
  readonly kind: "dag";
  readonly id: string;
  readonly [PROGRAM]: Program;
  readonly [CONF]?: Conf;
  readonly [RESULT]?: Result;
}

/**
 * Defines a DAG; `build` adds the tasks synchronously, and the handles that it returns are the result of the DAG.
 * @see docs/guides/options.md
 *
 * @example
 * ```ts
 * export default dag("sales_daily", { schedule: cron("0 2 * * *", "Europe/Berlin") }, (d) => {
 *   const rows = d.task("extract", { retries: 3 }, () => fetchRows());
 *   d.task("load", { inputs: { rows } }, ({ rows }) => loadRows(rows));
 * });
 * ```
 */
export function dag<R = void>(
  id: string,
  build: (d: DagBuilder) => R,
): Dag<SchemaInput<NoSchema>, ResultOf<R>>;
export function dag<Event, R = void>(
  id: string,
  options: EventDagOptions<Event>,
  build: (d: DagBuilder<EventParams<Event>>) => R,
): Dag<EventParams<Event>, ResultOf<R>>;
export function dag<Value, R = void>(
  id: string,
  options: SignalDagOptions<Value>,
  build: (d: DagBuilder<SignalParams<Value>>) => R,
): Dag<SignalParams<Value>, ResultOf<R>>;
export function dag<S extends StandardSchemaV1 = NoSchema, R = void>(
  id: string,
  options: DagOptions<S>,
  build: (d: DagBuilder<SchemaOutput<S>>) => R,
): Dag<SchemaInput<S>, ResultOf<R>>;
export function dag(id: string, ...rest: unknown[]): Dag {
  const [options, build] = rest.length > 1 ? rest : [undefined, rest[0]];
  const where = `dag ${show(id)}`;
  const draft = new Draft(id);
  if (typeof build !== "function") {
    throw new DagDefinitionError(
      "TW_BAD_OPTION",
      `${where}: dag() takes (id, build) or (id, options, build)`,
    );
  }
  const [checked, returned] = collectErrors(where, () => {
    const checked = checkDagOptions(options, where);
    const builder = new DraftBuilder(draft, { group: null, map: null, defaults: [checked.defaults] });
    return [checked, builder.build(build as (d: DraftBuilder) => unknown, where)];
  });
  if (draft.tasks.size === 0) {
    throw new DagDefinitionError("TW_EMPTY_DAG", `${where} has no tasks; add one with d.task()`);
  }
  checkGroups(draft);
  const { settings, params, callbacks, env } = checked;
  const { tasks, groups, maps } = draft;
  const plan = {
    dagId: id,
    settings,
    params,
    callbacks,
    env,
    tasks,
    groups,
    maps,
    downstream: draft.downstream(),
    owner: draft,
    result: resultOf(returned, draft),
  };
  return Object.freeze({ kind: "dag", id, [PROGRAM]: programOf(plan, checked.timetable) });
}

/**
 * Returns whether a value is a DAG, from any copy of the SDK.
 * @example const dags = Object.values(await import(file)).filter(isDag);
 */
export function isDag(value: unknown): value is Dag {
  return typeof value === "object" && value !== null && PROGRAM in value;
}

function programOf(plan: DagPlan, timetable: Timetable<unknown> | null): Program {
  let manifest: DagManifest | undefined;
  return Object.freeze({
    protocol: 1 as const,
    // Created on demand: a child that only runs tasks needs no manifest, and the JSON Schema of params is expensive.
    describe: () => (manifest ??= deepFreeze(describe(plan))),
    run: (call) => runAttempt(plan, call),
    callback: (call) => runCallback(plan, call),
    react: (call) => runReaction(plan, call),
    ...(plan.result && { result: plan.result }),
    ...(timetable !== null && { due: (call: DueCall) => runTimetable(timetable, call) }),
  } satisfies Program);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}
