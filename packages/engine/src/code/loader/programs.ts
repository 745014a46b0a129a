/**
 * The DAG programs that this process has loaded. A bundle is imported once per path (paths contain the content hash, so a
 * new version is a new path) and stays loaded: this makes a warm process fast.
 */

import { pathToFileURL } from "node:url";
import type { Program, PROGRAM as ProgramSymbol, TriggerProgram } from "@tradewind/sdk/program";
import { triggersOf } from "../bundle-triggers.ts";

/** The SDK's PROGRAM symbol, by its registered name: this process must load only the bundle itself. */
const PROGRAM = Symbol.for("tradewind.program") as typeof ProgramSymbol;

const loaded = new Map<string, Map<string, Program>>();
const modules = new Map<string, Readonly<Record<string, unknown>>>();

/** @throws the import error of the bundle, or an error that describes what is wrong with it. */
export async function loadPrograms(path: string): Promise<ReadonlyMap<string, Program>> {
  const known = loaded.get(path);
  if (known !== undefined) return known;
  const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  const programs = new Map<string, Program>();
  for (const exported of Object.values(module)) {
    // A DAG on its own, or several in an array, as in the bundler.
    for (const each of Array.isArray(exported) ? (exported.flat() as unknown[]) : [exported]) {
      const program = programOf(each);
      if (program !== null) programs.set(program.describe().dagId, program);
    }
  }
  loaded.set(path, programs);
  modules.set(path, module);
  return programs;
}

/** A trigger of a loaded bundle. */
export function triggerIn(path: string, kind: string): TriggerProgram | undefined {
  const module = modules.get(path);
  return module && triggersOf(module).get(kind);
}

/** A program that is already imported, without a turn of the event loop. */
export function loadedProgram(path: string, dagId: string): Program | undefined {
  return loaded.get(path)?.get(dagId);
}

function programOf(exported: unknown): Program | null {
  if ((typeof exported !== "object" && typeof exported !== "function") || exported === null) return null;
  const program = (exported as { readonly [PROGRAM]?: Program })[PROGRAM];
  if (program === undefined) return null;
  if (program.protocol !== 1) {
    throw Object.assign(
      new Error(`The bundle uses protocol ${program.protocol}, this engine supports 1; upgrade the engine.`),
      { code: "BUNDLE_PROTOCOL" },
    );
  }
  return program;
}
