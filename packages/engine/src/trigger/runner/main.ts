/** Entry point of both threads of the process: the thread that runs triggers, and the watchdog. */
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./trigger-process.ts");
else await import("./watchdog.ts");
