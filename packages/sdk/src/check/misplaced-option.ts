/** Finds the right place of an option that was given in a place that does not take it. */
import { INSTEAD, OTHER_NAMES } from "./airflow-names.ts";
import {
  DAG_OPTION_NAMES,
  GROUP_OPTION_NAMES,
  TASK_DEFAULT_NAMES,
  TASK_OPTION_NAMES,
} from "./option-names.ts";
import { nearest } from "./wording.ts";

export type OptionPlace = "dag" | "group" | "task" | "defaults";

/** Options of the whole run that resemble an option of a task. */
const OF_RUN: Readonly<Record<string, string>> = {
  retries: "runRetries retries the whole run",
  retryDelay: "runRetryDelay is the wait before a retry of the whole run",
  timeout: "runTimeout limits the whole run",
  maxActivePerRun: "maxActiveTasks limits the tasks of a run",
  maxActivePerDag: "maxActiveTasksPerDag limits the tasks over all runs",
};

const NAMES: Readonly<Record<OptionPlace, readonly string[]>> = {
  dag: DAG_OPTION_NAMES,
  defaults: TASK_DEFAULT_NAMES,
  group: GROUP_OPTION_NAMES,
  task: TASK_OPTION_NAMES,
};

/** The remedy for an option that this place does not take; undefined if no place has an option of that name. */
export function belongsTo(name: string, place: OptionPlace): string | undefined {
  const camel = camelCase(name);
  const instead = lookUp(INSTEAD, camel);
  if (instead !== undefined) return instead;
  const own = lookUp(OTHER_NAMES, camel) ?? camel;
  if (own !== name) {
    if (NAMES[place].includes(own)) return `it is called "${own}"`;
    const elsewhere = belongsTo(own, place);
    return elsewhere && `it is called "${own}"; ${elsewhere}`;
  }
  if (isIn(TASK_DEFAULT_NAMES, name)) {
    const owner = place === "group" ? "group" : "DAG";
    const all = `for all tasks of the ${owner} in "defaults: { ${name}: … }"`;
    const run = place === "dag" && OF_RUN[name] ? `; ${OF_RUN[name]}` : "";
    return place === "dag" || place === "group"
      ? `"${name}" is an option of tasks: give it to the task, or ${all}${run}`
      : undefined;
  }
  if (isIn(TASK_OPTION_NAMES, name) && place !== "task")
    return `"${name}" is an option of tasks: give it to the task${place === "defaults" ? "; defaults do not take it" : ""}`;
  if (isIn(DAG_OPTION_NAMES, name) && place !== "dag")
    return `"${name}" is an option of the DAG: give it to dag()`;
  return undefined;
}

/** The remedy for a misspelt or unknown name. */
export function meant(name: string, names: readonly string[], place?: OptionPlace): string {
  const camel = camelCase(name);
  const near = nearest(camel, names);
  if (near !== undefined) return `did you mean "${near}"?`;
  const other = place && nearest(camel, Object.values(NAMES).flat());
  const elsewhere = other && belongsTo(other, place);
  return elsewhere ? `did you mean "${other}"? ${elsewhere}` : `known options: ${names.join(", ")}`;
}

function camelCase(name: string): string {
  return name.replace(/_+([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function lookUp(table: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

function isIn(names: readonly string[], name: string): boolean {
  return names.includes(name);
}
