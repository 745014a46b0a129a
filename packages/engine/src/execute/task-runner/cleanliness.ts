/**
 * Detects leftovers of a task that could affect the next task in this process: a running timer, an open handle, a live
 * subprocess, a listener on the process, another working directory, a changed environment, much memory. Module state of
 * the bundle is not checked: sharing it is the purpose of a warm process.
 */
const RSS_LIMIT_BYTES = 768 * 1024 * 1024;
/** Reading the memory costs more than the other checks together. */
const RSS_EVERY = 32;

export class Cleanliness {
  readonly #cwd = process.cwd();
  readonly #environment: NodeJS.ProcessEnv;
  #environmentChanged = false;
  #resources: string[] = [];
  #listeners = 0;
  #checks = 0;

  constructor() {
    const touched = (): void => {
      this.#environmentChanged = true;
    };
    this.#environment = new Proxy(process.env, {
      set(target, key, value) {
        touched();
        return Reflect.set(target, key, value);
      },
      defineProperty(target, key, attributes) {
        touched();
        return Reflect.defineProperty(target, key, attributes);
      },
      deleteProperty(target, key) {
        touched();
        return Reflect.deleteProperty(target, key);
      },
    });
    process.env = this.#environment;
  }

  /** Accepts the present state: it belongs to the process or to the module level of a bundle. */
  accept(): void {
    this.#resources = process.getActiveResourcesInfo();
    this.#listeners = countListeners();
    this.#environmentChanged = false;
  }

  /** The leftover of a task; null: none. */
  leftover(): string | null {
    const resources = process.getActiveResourcesInfo();
    const open = surplus(resources, this.#resources);
    if (open !== "") return `left open: ${open}`;
    if (countListeners() !== this.#listeners) return "left or removed a listener on the process";
    if (this.#environmentChanged || process.env !== this.#environment) return "changed the environment";
    if (process.cwd() !== this.#cwd) return "changed the working directory";
    if (++this.#checks % RSS_EVERY === 0 && process.memoryUsage.rss() > RSS_LIMIT_BYTES)
      return "holds much memory";
    return null;
  }
}

function countListeners(): number {
  let count = 0;
  for (const name of process.eventNames()) count += process.listenerCount(name);
  return count;
}

function surplus(now: readonly string[], before: readonly string[]): string {
  if (now.length <= before.length && now.every((name, at) => name === before[at])) return "";
  const left = [...before];
  const more = now.filter((name) => {
    const at = left.indexOf(name);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
  return [...new Set(more)].join(", ");
}
