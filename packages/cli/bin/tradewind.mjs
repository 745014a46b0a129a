#!/usr/bin/env node
// The first thing that runs, on whatever Node the machine has: only syntax that Node 12 already understands,
// so that an old Node gets a sentence to act on and not a SyntaxError.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const REQUIRED = [22, 19];
const version = process.versions.node.split(".").map(Number);

if (version[0] < REQUIRED[0] || (version[0] === REQUIRED[0] && version[1] < REQUIRED[1])) {
  process.stderr.write(
    "tradewind needs Node.js " +
      REQUIRED.join(".") +
      " or newer; this is " +
      process.version +
      " (" +
      process.execPath +
      ").\n" +
      "Install a current Node.js (https://nodejs.org), or add one to this project: npm install --save-dev node@24,\n" +
      "then run tradewind through npx or an npm script, which use the project's own Node.js.\n",
  );
  process.exitCode = 6;
} else {
  start();
}

function start() {
  const built = new URL("../dist/main.js", import.meta.url);
  if (existsSync(built)) {
    import(built.href);
    return;
  }
  // A checkout that was never built: run the sources. The condition must be a flag of the process, because the
  // engine's children inherit it from there.
  const source = fileURLToPath(new URL("../src/main.ts", import.meta.url));
  if (!existsSync(source)) {
    process.stderr.write(
      "tradewind: this installation is incomplete (" +
        fileURLToPath(built) +
        " is missing); install it again.\n",
    );
    process.exitCode = 6;
    return;
  }
  const args = process.execArgv.concat(["--conditions=source", source], process.argv.slice(2));
  if (process.execve && process.platform !== "win32") {
    // The same process goes on: signals, exit code and terminal stay what they are.
    process.execve(process.execPath, [process.execPath].concat(args), process.env);
  }
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  // The terminal sends Ctrl-C to both; the child decides what it means.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {
    child.kill("SIGTERM");
  });
  child.on("exit", (code) => {
    process.exitCode = code === null ? 1 : code;
  });
}
