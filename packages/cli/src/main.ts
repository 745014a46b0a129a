/**
 * Entry point of the `tradewind` command. Node caches the compiled code in the temporary folder, which halves the start-up
 * time. NODE_DISABLE_COMPILE_CACHE=1 turns this off.
 */
import { enableCompileCache } from "node:module";
import { hideSecrets } from "./hidden-environment.ts";

hideSecrets();
enableCompileCache();
await import("./command-process.ts");
