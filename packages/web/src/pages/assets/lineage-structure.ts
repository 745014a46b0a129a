/** A lineage as the structure that graphs draw: data points to the DAGs that use it, DAGs to the data that they produce. Pure. */
import type { components } from "../../api/schema.gen.ts";
import type { Structure } from "../../graph/graph-model.ts";

export type Lineage = components["schemas"]["UiLineage"];

export const assetKey = (id: number) => `asset ${id}`;
const dagKey = (dagId: string) => `dag ${dagId}`;
const aliasKey = (id: number) => `alias ${id}`;

interface LineageNode {
  readonly kind: "asset" | "alias" | "dag";
  /** Of a DAG: the state of its latest run. */
  readonly state: string | null;
}

export interface LineageStructure {
  readonly structure: Structure;
  /** By position, as in the structure. */
  readonly nodes: readonly LineageNode[];
}

export function lineageStructure({ aliases, assets, dags, edges }: Lineage): LineageStructure {
  const common = { group: null, is_mapped: false };
  const tasks = [
    ...assets.map(({ group, id, uri }) => ({
      ...{ ...common, task_id: assetKey(id), label: uri, isData: true },
      operator: group === "asset" ? "asset" : `asset, ${group}`,
    })),
    ...aliases.map(({ id, name }) => ({
      ...{ ...common, task_id: aliasKey(id), label: name, operator: "alias", isData: true },
    })),
    ...dags.map(({ dag_id, is_paused }) => ({
      ...{ ...common, task_id: dagKey(dag_id), label: dag_id, operator: is_paused ? "DAG, paused" : "DAG" },
    })),
  ];
  const place = new Map(tasks.map(({ task_id }, index) => [task_id, index]));
  const [from, to]: [number[], number[]] = [[], []];
  for (const { alias_id, asset_id, dag_id, kind } of edges) {
    const data = place.get(asset_id === null ? aliasKey(alias_id!) : assetKey(asset_id));
    const dag = place.get(dagKey(dag_id));
    if (data === undefined || dag === undefined) continue;
    from.push(kind === "produces" ? dag : data);
    to.push(kind === "produces" ? data : dag);
  }
  return {
    structure: { tasks, groups: [], edges: { from, to } },
    nodes: [
      ...assets.map(() => ({ kind: "asset", state: null }) as const),
      ...aliases.map(() => ({ kind: "alias", state: null }) as const),
      ...dags.map(({ state }) => ({ kind: "dag", state }) as const),
    ],
  };
}
