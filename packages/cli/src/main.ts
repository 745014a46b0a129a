/**
 * Entry point of the `tradewind` command. Node caches the compiled code, which halves the start-up time.
 * NODE_DISABLE_COMPILE_CACHE=1 turns this off; NODE_COMPILE_CACHE names another folder.
 */
import { enableCompileCache } from "node:module";
import { compileCacheFolder } from "./compile-cache.ts";
import { hideSecrets } from "./hidden-environment.ts";

hideSecrets();
const folder = compileCacheFolder();
if (folder !== undefined) enableCompileCache(folder);
await import("./command-process.ts");
