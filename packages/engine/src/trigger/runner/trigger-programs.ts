/**
 * The kinds of triggers this process can run. A bundle is imported once per path (paths are named by content hash, so
 * a new version is a new path, and both stay). What its top level does, and whatever that leaves behind, happens in
 * the name of the bundle and not of the trigger that happened to need it first.
 */
import { pathToFileURL } from "node:url";
import type {
  CLASSES_EXPORT as ClassesExport,
  TriggerProgram,
  TRIGGER as TriggerSymbol,
} from "@tradewind/sdk/program";
import { joint } from "./joint-wait.ts";
import { beginLoad } from "./pulse.ts";
import { inScope, type Scope } from "./scope.ts";

/** By their registered names: this process must load nothing but the bundles themselves. */
const TRIGGER = Symbol.for("tradewind.trigger") as typeof TriggerSymbol;
const CLASSES: typeof ClassesExport = "tradewind$classes";

const loading = new Map<string, Promise<ReadonlyMap<string, TriggerProgram>>>();

/** @throws whatever the bundle throws on import, or an error that says that there is no such kind. */
export async function findProgram(
  kind: string,
  bundlePath: string | null,
  asker: Scope,
): Promise<TriggerProgram> {
  if (kind === "tradewind.all") {
    return joint((member) => findProgram(member.kind, member.source === "bundle" ? bundlePath : null, asker));
  }
  const program = bundlePath === null ? await builtin(kind) : (await loaded(bundlePath, asker)).get(kind);
  if (program === undefined) {
    const message =
      bundlePath === null
        ? `This engine has no trigger "${kind}".`
        : `The DAG's bundle has no trigger "${kind}"; its class must be at the top level of an ES module.`;
    throw Object.assign(new Error(message), { code: "TRIGGER_KIND_UNKNOWN" });
  }
  if (program.protocol !== 1) {
    const message = `Trigger "${kind}" speaks protocol ${program.protocol}, this engine speaks 1; upgrade the engine.`;
    throw Object.assign(new Error(message), { code: "BUNDLE_PROTOCOL" });
  }
  return program;
}

/** Loaded when first asked for: the drivers behind the built-in kinds would take longer than all the rest. */
async function builtin(kind: string): Promise<TriggerProgram | undefined> {
  const end = beginLoad();
  try {
    const { builtinTrigger } = await import("../builtin/index.ts");
    return await builtinTrigger(kind);
  } finally {
    end();
  }
}

function loaded(path: string, asker: Scope): Promise<ReadonlyMap<string, TriggerProgram>> {
  let programs = loading.get(path);
  if (programs === undefined) {
    const scope: Scope = { who: path, log: (...record) => asker.log(...record) };
    programs = inScope(scope, () => load(path));
    loading.set(path, programs);
    // A file that was not there may be there next time; Node remembers a module that threw by itself.
    programs.catch(() => loading.delete(path));
  }
  return programs;
}

async function load(path: string): Promise<ReadonlyMap<string, TriggerProgram>> {
  const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  const classes = module[CLASSES];
  const listed = typeof classes === "function" ? (classes() as unknown[]) : [];
  const programs = new Map<string, TriggerProgram>();
  for (const each of [...listed, ...Object.values(module)]) {
    const program = programOf(each);
    if (program !== null && !programs.has(program.id)) programs.set(program.id, program);
  }
  return programs;
}

function programOf(value: unknown): TriggerProgram | null {
  if (typeof value !== "function") return null;
  try {
    return (value as unknown as { readonly [TRIGGER]?: TriggerProgram })[TRIGGER] ?? null;
  } catch {
    // A class that cannot be a trigger by itself: the base of others.
    return null;
  }
}
