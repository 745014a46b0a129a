#!/usr/bin/env node
// Runs first, on any Node: uses only syntax of Node 12, so that an old Node prints a clear message instead of a
// SyntaxError.
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
  // A checkout without a build: run the sources. The condition must be a process flag, because the engine's child
  // processes inherit it.
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
    // Replace this process: signals, exit code and terminal stay the same.
    process.execve(process.execPath, [process.execPath].concat(args), process.env);
  }
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  // The terminal sends Ctrl-C to both processes; the child handles it.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {
    child.kill("SIGTERM");
  });
  child.on("exit", (code) => {
    process.exitCode = code === null ? 1 : code;
  });
}
