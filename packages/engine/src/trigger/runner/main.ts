/** One file for both threads of the process: the one that runs triggers, and the one that watches it. */
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./trigger-process.ts");
else await import("./watchdog.ts");
