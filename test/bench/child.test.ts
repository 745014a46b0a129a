import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { startTradewind, watchChild } from "../../bench/child.ts";

const NEVER = new Promise<never>(() => {});

function program(code: string) {
  const child = watchChild(
    "the program",
    spawn(process.execPath, ["-e", code], { stdio: ["pipe", 2, "pipe"] }),
  );
  onTestFinished(() => child.stop());
  return child;
}

it("fails work with the child's stderr when the child ends", async () => {
  const child = program(`process.stdin.resume().on("end", () => { throw new Error("the disk is gone"); });`);
  const work = expect(child.during(NEVER)).rejects.toThrow(
    /^the program has ended with exit code 1:.*the disk is gone/s,
  );
  child.process.stdin?.end();
  await work;
  // Also work that begins afterwards.
  await expect(child.during(NEVER)).rejects.toThrow("the disk is gone");
});

it("fails work when the child is killed although a process of it keeps stderr open", async () => {
  const child = program(`
    const { pid } = require("child_process").spawn("sleep", ["60"], { stdio: ["ignore", "ignore", "inherit"] });
    process.stderr.write(pid + "\\n");`);
  const [pid] = (await once(child.process.stderr!, "data")) as [string];
  onTestFinished(() => void process.kill(Number(pid)));
  child.process.kill("SIGKILL");
  await expect(child.during(NEVER)).rejects.toThrow("the program has ended with SIGKILL");
});

it("returns the result of work while the child runs, and stops the child", async () => {
  const child = program("process.stdin.resume();");
  await once(child.process, "spawn");
  expect(await child.during(Promise.resolve("done"))).toBe("done");
  await child.stop();
  expect(child.process.signalCode).toBe("SIGTERM");
});

it("fails work with the error of a Tradewind command that cannot start", async () => {
  const child = startTradewind(["signals", "serve", "--port", "0"], {});
  onTestFinished(() => child.stop());
  await expect(child.during(NEVER)).rejects.toThrow(
    /^tradewind signals has ended with exit code 2:.*DATABASE_URL/s,
  );
});
