/**
 * The folder of Node's cache of compiled code: below the cache folder of the account. Node's default is a fixed path in the
 * temporary folder, where another account could place code first, which the next command would execute.
 */
import { existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/** undefined: no folder that only this account can write. A command then compiles its code at each start. */
export function compileCacheFolder(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { XDG_CACHE_HOME: given = "" } = env;
  try {
    // Not `recursive`: Node.js would try forever where the system allows no folders, such as below /proc.
    const caches = isAbsolute(given) ? given : join(homedir(), ".cache");
    const folder = join(caches, "tradewind", "compiled");
    for (const path of [caches, dirname(folder), folder]) createFolder(path);
    // Of the folders that are used, not of links to them.
    const path = realpathSync(folder);
    return isOnlyOurs(path) ? path : undefined;
  } catch {
    return undefined;
  }
}

function createFolder(path: string): void {
  if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
}

/** No other account but root can write into it, or replace it or a folder above it. */
function isOnlyOurs(path: string): boolean {
  const own = process.getuid?.();
  if (own === undefined) return true;
  for (let at = path; ; at = dirname(at)) {
    const { mode, uid } = statSync(at);
    if (uid !== own && (uid !== 0 || at === path)) return false;
    // Others can add entries to /tmp and its like, but not replace ours.
    const isShared = at !== path && (mode & STICKY) !== 0;
    if ((mode & WRITABLE_BY_OTHERS) !== 0 && !isShared) return false;
    if (at === dirname(at)) return true;
  }
}
