/**
 * `env` of DAGs and tasks in a process that runs several calls at once: the code of a call, and the programs it starts,
 * see `process.env` with the call's variables; all other code sees it unchanged. Changes that a call makes are local to
 * it, too.
 */
import type { OpenWorkTracker } from "@tradewind/engine/open-work";

type Changes = Map<string, string | undefined>;

interface Installed {
  readonly changes: WeakMap<object, Changes>;
  environment: NodeJS.ProcessEnv | null;
}

const INSTALLED = Symbol.for("tradewind.callEnvironments");

export function setEnvironment(
  tracker: OpenWorkTracker,
  call: object,
  values: Readonly<Record<string, string>>,
): void {
  installed(tracker).set(call, new Map(Object.entries(values)));
}

/**
 * Once per process, even with several copies of this module, and again if a test has replaced `process.env`. It stays
 * installed: code of a call that has ended may still run.
 */
function installed(tracker: OpenWorkTracker): WeakMap<object, Changes> {
  const home = globalThis as { [INSTALLED]?: Installed };
  home[INSTALLED] ??= { changes: new WeakMap(), environment: null };
  const { changes } = home[INSTALLED];
  if (home[INSTALLED].environment !== process.env) {
    process.env = layered(tracker, changes);
    home[INSTALLED].environment = process.env;
  }
  return changes;
}

function layered(tracker: OpenWorkTracker, changes: WeakMap<object, Changes>): NodeJS.ProcessEnv {
  const ofCall = (): Changes | undefined => {
    const call = tracker.current();
    return call === null ? undefined : changes.get(call);
  };
  const isChanged = (key: string | symbol): key is string => ofCall()?.has(key as string) ?? false;
  return new Proxy(process.env, {
    get: (target, key) => (isChanged(key) ? ofCall()?.get(key) : Reflect.get(target, key)),
    has: (target, key) => (isChanged(key) ? ofCall()?.get(key) !== undefined : Reflect.has(target, key)),
    set(target, key, value) {
      const own = ofCall();
      if (own === undefined || typeof key === "symbol") return Reflect.set(target, key, value);
      own.set(key, String(value));
      return true;
    },
    deleteProperty(target, key) {
      const own = ofCall();
      if (own === undefined || typeof key === "symbol") return Reflect.deleteProperty(target, key);
      own.set(key, undefined);
      return true;
    },
    ownKeys(target) {
      const names = new Set(Reflect.ownKeys(target));
      for (const [name, value] of ofCall() ?? []) {
        if (value === undefined) names.delete(name);
        else names.add(name);
      }
      return [...names];
    },
    getOwnPropertyDescriptor(target, key) {
      if (!isChanged(key)) return Reflect.getOwnPropertyDescriptor(target, key);
      const value = ofCall()?.get(key);
      if (value === undefined) return undefined;
      return { value, writable: true, enumerable: true, configurable: true };
    },
  });
}
