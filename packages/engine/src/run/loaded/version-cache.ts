/** DAG versions as the scheduler uses them: compiled once, shared by all runs of the version, never changed. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { compileGraph, type Graph, isDriven, RuleSet } from "../../model/index.ts";
import { EngineError } from "../../service/errors.ts";
import { loadVersion } from "../../store/dag/dag-catalogue.ts";
import type { Connection } from "../../store/database/database.ts";
import { limitKeyOf } from "../../store/pool/limit-key.ts";
import type { InstanceColumns } from "../../store/run/run-claim.ts";

export interface DagVersion {
  readonly id: number;
  readonly number: number;
  readonly bundleHash: string;
  readonly manifest: DagManifest;
  readonly graph: Graph;
  readonly columns: InstanceColumns;
  readonly rules: RuleSet;
  /** Whether its runs are signal-driven. */
  readonly isDriven: boolean;
  /** Whether a task depends on earlier runs of the DAG. */
  readonly isGated: boolean;
  /** Whether the DAG or a task has deadlines. */
  readonly hasDeadlines: boolean;
}

export class VersionCache {
  readonly #limit: number;
  readonly #versions = new Map<number, DagVersion>();

  constructor(limit = 1_000) {
    this.#limit = limit;
  }

  async get(db: Connection, id: number): Promise<DagVersion> {
    const known = this.#versions.get(id);
    if (known) return known;
    const stored = await loadVersion(db, id);
    if (!stored) throw new EngineError("DAG_VERSION_MISSING", `DAG version ${id} is not in the database.`);
    const { manifest, bundleHash, number } = stored;
    const graph = compileGraph(manifest);
    const version = {
      id,
      number,
      bundleHash,
      manifest,
      graph,
      columns: instanceColumns(graph, manifest),
      rules: new RuleSet(manifest),
      isDriven: isDriven(manifest),
      isGated: graph.nodes.some(({ gated }) => gated),
      hasDeadlines: [manifest, ...manifest.tasks].some(({ deadlines }) => deadlines !== undefined),
    };
    this.#versions.set(id, version);
    for (const oldest of this.#versions.keys()) {
      if (this.#versions.size <= this.#limit) break;
      this.#versions.delete(oldest);
    }
    return version;
  }
}

function instanceColumns(graph: Graph, dag: DagManifest): InstanceColumns {
  const tasks = graph.nodes.map((node) => node.manifest);
  return {
    taskIds: tasks.map((task) => task.taskId),
    maxTries: tasks.map((task) => task.retries),
    pools: tasks.map((task) => task.pool),
    poolSlots: tasks.map((task) => task.poolSlots),
    limitKeys: tasks.map((task) => limitKeyOf(dag, task)),
    queues: tasks.map((task) => task.queue),
    weights: graph.nodes.map((node) => node.weight),
    executors: tasks.map((task) => task.executor),
    operators: tasks.map((task) => task.operator),
  };
}
