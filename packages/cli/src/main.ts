/**
 * Where the `tradewind` command begins. Its code is compiled once and kept, by Node itself, in the temporary folder:
 * that halves the time until a command begins to work. NODE_DISABLE_COMPILE_CACHE=1 goes without.
 */
import { enableCompileCache } from "node:module";
import { hideSecrets } from "./hidden-environment.ts";

hideSecrets();
enableCompileCache();
await import("./command-process.ts");
