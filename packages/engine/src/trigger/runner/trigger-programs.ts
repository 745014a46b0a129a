/**
 * The kinds of triggers that this process can run. A bundle is imported once per path (paths contain the content hash, so
 * a new version is a new path, and both stay). The top level of a bundle, and everything it starts, runs in the scope of
 * the bundle, not of the trigger that needed the bundle first.
 */
import { pathToFileURL } from "node:url";
import type { TriggerCall } from "@tradewind/sdk/manifest";
import type { TriggerProgram } from "@tradewind/sdk/program";
import { triggersOf } from "../../code/bundle-triggers.ts";
import { ALL_KIND, ANY_KIND } from "../../model/signal/joint-wait.ts";
import { type IgnoredAbort, watchAborts } from "./abort-watch.ts";
import { beginLoad } from "./pulse.ts";
import { inScope, type Scope } from "./scope.ts";
import { waitForAll } from "./wait-for-all.ts";
import { waitForAny } from "./wait-for-any.ts";

/** The trigger for which a program is looked up. */
export interface Asker extends Scope {
  ignoredAbort(ignored: IgnoredAbort): void;
}

const loading = new Map<string, Promise<ReadonlyMap<string, TriggerProgram>>>();

/** @throws the import error of the bundle, or an error for an unknown kind. */
export async function findProgram(
  kind: string,
  bundlePath: string | null,
  asker: Asker,
): Promise<TriggerProgram> {
  const find = (member: TriggerCall): Promise<TriggerProgram> =>
    findProgram(member.kind, member.source === "bundle" ? bundlePath : null, asker);
  if (kind === ALL_KIND) return waitForAll(find);
  if (kind === ANY_KIND) return waitForAny(find);
  const program = bundlePath === null ? await builtin(kind) : (await loaded(bundlePath, asker)).get(kind);
  if (program === undefined) {
    const message =
      bundlePath === null
        ? `This engine has no trigger "${kind}".`
        : `The DAG's bundle has no trigger "${kind}"; its class must be at the top level of an ES module.`;
    throw Object.assign(new Error(message), { code: "TRIGGER_KIND_UNKNOWN" });
  }
  if (program.protocol !== 1) {
    const message = `Trigger "${kind}" uses protocol ${program.protocol}, this engine supports 1; upgrade the engine.`;
    throw Object.assign(new Error(message), { code: "BUNDLE_PROTOCOL" });
  }
  return watchAborts(program, (ignored) => asker.ignoredAbort(ignored));
}

/** Loaded at the first use: the drivers behind the built-in kinds take longer to load than everything else. */
async function builtin(kind: string): Promise<TriggerProgram | undefined> {
  const end = beginLoad();
  try {
    const { builtinTrigger } = await import("../../builtin/index.ts");
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
    // A missing file may exist next time. Node itself caches a module that threw.
    programs.catch(() => loading.delete(path));
  }
  return programs;
}

async function load(path: string): Promise<ReadonlyMap<string, TriggerProgram>> {
  return triggersOf((await import(pathToFileURL(path).href)) as Record<string, unknown>);
}
