import type { Task } from "../client/resources.ts";

/** The trigger rule of a task as its DAG file spells it: `noneFailed`. The API has Airflow's `none_failed`. */
export function ruleName({ trigger_rule: rule }: Task): string {
  return (rule ?? "").replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
