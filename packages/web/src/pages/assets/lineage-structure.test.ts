import { expect, it } from "vitest";
import { lineageStructure } from "./lineage-structure.ts";

it("draws data between the DAGs that produce and use it", () => {
  const edge = (dag_id: string, kind: "produces" | "schedule", task_ids: string[]) => ({
    ...{ dag_id, kind, task_ids, asset_id: 7, alias_id: null },
  });
  const { nodes, structure } = lineageStructure({
    assets: [{ id: 7, uri: "s3://orders", group: "shop", last_event_at: null }],
    aliases: [{ id: 7, name: "daily" }],
    dags: [
      { dag_id: "load", is_paused: true, state: "failed" },
      { dag_id: "report", is_paused: false, state: null },
    ],
    edges: [
      edge("load", "produces", ["write"]),
      edge("report", "schedule", []),
      { dag_id: "load", kind: "produces", task_ids: ["write"], asset_id: null, alias_id: 7 },
      // Its asset is not part of the answer.
      { dag_id: "load", kind: "produces", task_ids: ["write"], asset_id: 8, alias_id: null },
    ],
    more: false,
  });
  const names = structure.tasks.map(({ label, operator }) => `${label}: ${operator}`);
  expect(names).toEqual(["s3://orders: asset, shop", "daily: alias", "load: DAG, paused", "report: DAG"]);
  expect(structure.edges).toEqual({ from: [2, 0, 2], to: [0, 3, 1] });
  expect(nodes[2]).toEqual({ kind: "dag", state: "failed" });
});
