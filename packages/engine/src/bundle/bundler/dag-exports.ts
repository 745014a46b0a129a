/** Finds the DAGs among the exports of an artefact, by the program protocol and never by `instanceof`. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { PROGRAM, type Program } from "@tradewind/sdk/program";
import { duplicateId, manifestProblem } from "./manifest-check.ts";
import { DagRefused } from "./refusal.ts";

/** Manifests of every exported DAG (default, named, or in an exported array), in the order of their ids. */
export function describeExports(exports: Readonly<Record<string, unknown>>): DagManifest[] {
  const programs = new Set<Program>();
  for (const value of Object.values(exports)) {
    for (const item of Array.isArray(value) ? (value.flat() as unknown[]) : [value]) {
      const program = programOf(item);
      if (program) programs.add(program);
    }
  }
  const manifests = [...programs].map(describe);
  const twice = duplicateId(manifests);
  if (twice !== null) throw new DagRefused(twice);
  return manifests.sort((a, b) => (a.dagId < b.dagId ? -1 : 1));
}

/** A sub-DAG has runs of its own, so it must be exported. A sub-DAG from another file is exported there. */
export function refuseHiddenSubDags(manifests: readonly DagManifest[], unexported: readonly string[]): void {
  for (const { dagId, tasks } of unexported.length === 0 ? [] : manifests) {
    const hidden = tasks.find(({ dag }) => dag !== undefined && unexported.includes(dag));
    if (hidden === undefined) continue;
    throw new DagRefused(
      `dag "${dagId}", task "${hidden.taskId}": its DAG "${hidden.dag}" is not exported, and could not be run: export it, too.`,
    );
  }
}

function programOf(value: unknown): Program | null {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return null;
  const program = (value as { [PROGRAM]?: Program })[PROGRAM];
  return program ?? null;
}

function describe(program: Program): DagManifest {
  if (program.protocol !== 1) {
    throw new DagRefused(
      `This file was written for another version of Tradewind (protocol ${String(program.protocol)}, this engine supports 1): ` +
        `install the same version of "tradewind" in the DAG's project and in the engine.`,
    );
  }
  const manifest = program.describe();
  const problem = manifestProblem(manifest);
  if (problem !== null) throw new DagRefused(problem);
  return manifest;
}
