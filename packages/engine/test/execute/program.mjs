/**
 * A DAG program written directly against the protocol, for tests of the executor: one task per correct or faulty behaviour.
 * `conf` has the arguments.
 */
import { spawn } from "node:child_process";
import { appendFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const OK = (output) => ({ kind: "success", output, skip: [] });
const forever = () => new Promise(() => setInterval(() => {}, 1_000));
let calls = 0;
let kept = "nothing";

const tasks = {
  noop: async () => OK(undefined),
  returns: async (call) => OK(call.conf.value),
  diesSending: async () => {
    // The third chunk of the output is never sent.
    const { stringify } = JSON;
    let pieces = 0;
    JSON.stringify = (value, ...rest) => {
      if (value?.k === "piece" && ++pieces === 3) process.kill(process.pid, "SIGKILL");
      return stringify(value, ...rest);
    };
    return OK("x".repeat(1_900_000));
  },
  pid: async () => OK({ pid: process.pid, calls: ++calls }),
  echo: async (call) =>
    OK({ inputs: call.inputs, conf: call.conf, run: call.run.runId, tryNumber: call.tryNumber }),
  skip: async () => ({ kind: "skipped", reason: "nothing to do" }),
  fail: async () => {
    const error = new Error("it went wrong");
    return {
      kind: "failed",
      error: { name: "Error", message: error.message, stack: error.stack, code: null },
      retry: false,
    };
  },
  mark: async (call) => {
    appendFileSync(call.conf.file, `${call.conf.name}\n`);
    return OK(undefined);
  },
  env: async () => OK({ ...process.env }),
  ask: async (call) =>
    OK({
      output: await call.host.output("upstream", null),
      variable: await call.host.variable("plain"),
      missing: (await call.host.variable("missing")) === undefined,
    }),
  askBroken: async (call) => OK(await call.host.variable("broken").catch((error) => error.message)),
  talk: async (call) => {
    call.host.log("info", "by the logger", { rows: 3 });
    console.log("by console.log");
    console.warn("by console.warn");
    console.error("by console.error");
    console.debug("by console.debug");
    process.stdout.write("in two ");
    process.stdout.write("writes\n");
    writeSync(1, "by descriptor 1\n");
    const child = spawn(process.execPath, ["-e", "console.log('by a subprocess')"], { stdio: "inherit" });
    await new Promise((resolve) => child.on("exit", resolve));
    process.stdout.write(Buffer.from([0x61, 0xff, 0x00, 0x62, 0x0a]));
    process.stdout.write("no newline at the end");
    return OK(undefined);
  },
  /** Logs each value of a variable until there is none. */
  recite: async (call) => {
    for (;;) {
      const line = await call.host.variable("line");
      if (line === "end") return OK(undefined);
      console.log(line);
    }
  },
  flood: async (call) => {
    const line = `${"x".repeat(1023)}\n`;
    for (let at = 0; at < call.conf.kilobytes; at++) process.stdout.write(line);
    return OK(undefined);
  },
  floodRaw: async (call) => {
    const block = Buffer.from(`${"y".repeat(1023)}\n`.repeat(64));
    for (let at = 0; at < call.conf.kilobytes / 64; at++) writeSync(1, block);
    return OK(undefined);
  },
  longLine: async () => {
    process.stdout.write("z".repeat(3_000_000));
    process.stdout.write("\nafter\n");
    return OK(undefined);
  },
  leak: async (call) => {
    const { password, extra } = await call.host.connection("warehouse");
    const token = await call.host.variable("api_token");
    kept = password;
    console.log(`password=${password}`);
    for (const character of `split ${password}\n`) process.stdout.write(character);
    console.log(Buffer.from(`user:${password}`).toString("base64"));
    console.log(encodeURIComponent(password), JSON.stringify({ password }), { password });
    call.host.log("info", `token ${token}`, { token, nested: { list: [extra.key] } });
    writeSync(2, `raw ${password}\n`);
    const error = new Error(`cannot log in with ${password}`);
    return {
      kind: "failed",
      error: { name: "Error", message: error.message, stack: error.stack, code: null },
      retry: true,
    };
  },
  leakLater: async () => {
    console.log(`kept: ${kept}`);
    return OK(undefined);
  },
  /** Stops on cancellation. */
  polite: async (call) => {
    const { abort } = call.host;
    const beat = setInterval(() => {}, 1_000);
    await new Promise((resolve) => abort.addEventListener("abort", resolve));
    clearInterval(beat);
    console.log(`asked to stop: ${abort.reason.name}`);
    const { name, message } = abort.reason;
    return { kind: "failed", error: { name, message, stack: null, code: null }, retry: true };
  },
  /** Logs that it has started, and returns its work on cancellation. */
  stream: async (call) => {
    const { abort } = call.host;
    appendFileSync(call.conf.file, "streaming\n");
    let rows = 0;
    while (!abort.aborted) {
      rows++;
      await sleep(2);
    }
    if (call.conf.gate) await tasks.hold(call);
    console.log(`stopped: ${abort.reason.message}`);
    const signals = [{ namespace: "default", key: "stream.rows", value: rows }];
    return { kind: "success", output: { streamed: rows > 0 }, skip: ["after"], signals };
  },
  /** Logs that it has started; on cancellation does what `conf.deed` names. */
  whenAsked: async (call) => {
    const { abort } = call.host;
    const asked = new Promise((resolve) => abort.addEventListener("abort", resolve));
    appendFileSync(call.conf.file, "waiting\n");
    await asked;
    return await tasks[call.conf.deed](call);
  },
  deaf: forever,
  deafWithChild: async (call) => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    appendFileSync(call.conf.file, `${child.pid}\n`);
    await forever();
  },
  loop: async (call) => {
    appendFileSync(call.conf.file, `${process.pid}\n`);
    for (;;);
  },
  loopWithChild: async (call) => {
    const child = spawn(process.execPath, ["-e", "for(;;);"], { stdio: "ignore" });
    appendFileSync(call.conf.file, `${process.pid}\n${child.pid}\n`);
    for (;;);
  },
  memory: async () => {
    const kept = [];
    for (;;) {
      kept.push(Buffer.alloc(16 * 1024 * 1024, 1));
      await sleep(20);
    }
  },
  heap: async () => {
    const kept = [];
    for (;;) kept.push(new Array(100_000).fill(kept.length));
  },
  exit: async (call) => {
    console.error("last words");
    process.exit(call.conf.code);
  },
  signal: async (call) => {
    writeSync(2, "raw last words\n");
    process.kill(process.pid, call.conf.signal);
    await forever();
  },
  throwLater: async () => {
    setTimeout(() => {
      throw new Error("thrown in a timer");
    }, 1);
    await forever();
  },
  rejectUnseen: async () => {
    void Promise.reject(new Error("unhandled rejection"));
    return OK(undefined);
  },
  neverSettles: () => new Promise(() => {}),
  waitForCombined: (call) => {
    const { signal } = new AbortController();
    const either = AbortSignal.any([call.host.abort, signal]);
    return new Promise((resolve) => either.addEventListener("abort", () => resolve(OK(undefined))));
  },
  waitForAbort: (call) =>
    new Promise((resolve) => call.host.abort.addEventListener("abort", () => resolve(OK(undefined)))),
  big: async () => OK({ text: "x".repeat(17 * 1024 * 1024) }),
  notJson: async () => OK({ count: 1n }),
  leaveTimer: async () => {
    setInterval(() => {}, 1_000);
    return OK({ pid: process.pid });
  },
  leaveCwd: async () => {
    process.chdir("/");
    return OK({ pid: process.pid });
  },
  leaveEnv: async () => {
    process.env.LEFT = "behind";
    return OK({ pid: process.pid });
  },
  leaveListener: async () => {
    process.on("SIGUSR2", () => {});
    return OK({ pid: process.pid });
  },
  /** Writes to the channel without the runner. */
  forge: async (call) => {
    const message = {
      k: "ended",
      id: call.conf.id ?? call.attempt,
      outcome: OK("forged"),
      logged: 0,
      dropped: 0,
      aborted: false,
      unclean: null,
    };
    writeSync(3, `${JSON.stringify(message)}\n`);
    if (call.conf.twice) writeSync(3, `${JSON.stringify(message)}\n`);
    await sleep(20);
    return OK({ pid: process.pid });
  },
  babble: async (call) => {
    writeSync(3, call.conf.text);
    await forever();
  },
  hold: async (call) => {
    const { access } = await import("node:fs/promises");
    for (;;) {
      if (
        await access(call.conf.gate).then(
          () => true,
          () => false,
        )
      )
        return OK(undefined);
      await sleep(5);
    }
  },
};

/** By the key of the signal. */
const reactions = {
  say: async ({ signal, conf, host, ...call }) => {
    console.log(`heard ${signal.namespace} ${signal.key} ${signal.version}`);
    host.log("info", "facts", { conf, run: call.run.runId, taskId: call.taskId, tryNumber: call.tryNumber });
    return { ok: true, action: signal.value };
  },
  mark: async ({ conf }) => {
    appendFileSync(conf.file, `${conf.name}\n`);
    return { ok: true, action: "NONE" };
  },
  silent: async ({ signal }) => ({ ok: true, action: signal.value }),
  fail: async () => ({
    ok: false,
    error: { name: "Error", message: "cannot say", stack: null, code: "TW_SIGNAL_ACTION" },
  }),
  reject: async () => {
    throw new Error("a promise broken");
  },
  nothing: async () => undefined,
  vague: async () => ({ ok: true }),
  hang: async ({ conf }) => {
    if (conf.file) appendFileSync(conf.file, `${process.pid}\n`);
    await forever();
  },
  neverSettles: () => new Promise(() => {}),
  late: async ({ host }) => {
    while (!host.abort.aborted) await sleep(2);
    return { ok: true, action: "STOP" };
  },
  exit: async ({ signal }) => process.exit(signal.value),
  kill: async () => {
    process.kill(process.pid, "SIGKILL");
    await forever();
  },
  leak: async ({ host }) => {
    const { password } = await host.connection("warehouse");
    console.log(`with ${password}`);
    return { ok: false, error: { name: "Error", message: `not ${password}`, stack: null, code: null } };
  },
};

/** An SDK without signals. */
export const old = {
  [Symbol.for("tradewind.program")]: {
    protocol: 1,
    describe: () => ({ dagId: "old" }),
    run: async () => OK(undefined),
    callback: async () => ({ ok: true }),
  },
};

export const dag = {
  [Symbol.for("tradewind.program")]: {
    protocol: 1,
    describe: () => ({ dagId: "testing" }),
    run: (call) => tasks[call.taskId](call),
    callback: async (call) => {
      if (call.event === "retry")
        return { ok: false, error: { name: "Error", message: "callback failed", stack: null, code: null } };
      if (call.conf?.file)
        appendFileSync(call.conf.file, `${call.event} ${call.taskId} ${call.error?.code}\n`);
      if (call.conf?.hang) await forever();
      return { ok: true };
    },
    react: (call) => reactions[call.signal.key](call),
  },
};
