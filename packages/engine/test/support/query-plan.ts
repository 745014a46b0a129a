/** Plans of prepared statements. */
import { adhoc, type Database } from "../../src/store/database/database.ts";

export interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly Plan[];
}

export interface PlanRow {
  readonly "QUERY PLAN": [{ Plan: Plan }];
}

/** The custom and the generic plan. `values`: "(1, 'a')". */
export async function plansOf(db: Database, name: string, values: string): Promise<[string, Plan][]> {
  const plans: [string, Plan][] = [];
  for (const mode of ["force_custom_plan", "force_generic_plan"]) {
    await db.rows(adhoc(`SET plan_cache_mode = ${mode}`));
    const rows = await db.rows<PlanRow>(adhoc(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"${values}`));
    plans.push([mode, planOf(rows)]);
  }
  return plans;
}

export function planOf(rows: readonly PlanRow[]): Plan {
  const plan = rows[0]?.["QUERY PLAN"][0].Plan;
  if (!plan) throw new Error("no plan");
  return plan;
}

export function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}
