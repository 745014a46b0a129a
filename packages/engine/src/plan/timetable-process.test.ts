/** The process that runs timetables, against hostile bundles. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TimetableProcess } from "./timetable-process.ts";
import { readAnswer } from "./timetable-protocol.ts";

let folder: string;
let files = 0;
const started: TimetableProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-timetable-"));
});

afterAll(async () => {
  await Promise.all(started.map((each) => each.stop()));
  await rm(folder, { recursive: true, force: true });
});

const call = { last: null, now: 1_000, start: null, end: null, catchup: false, slackMs: 0 };
const due = { logicalDate: 5, intervalStart: 5, intervalEnd: 5, runAfter: 5 };
const GOOD = `return { ok: true, due: ${JSON.stringify(due)} };`;

/** A bundle with one DAG, "x", whose program answers with this code. */
async function bundle(code: string, head = ""): Promise<string> {
  const path = join(folder, `bundle_${++files}.mjs`);
  const program = `{ protocol: 1, describe: () => ({ dagId: "x" }), async due(call) { ${code} } }`;
  await writeFile(path, `${head}\nexport default { [Symbol.for("tradewind.program")]: ${program} };\n`);
  return path;
}

function asker(options: ConstructorParameters<typeof TimetableProcess>[0] = {}): TimetableProcess {
  const asked = new TimetableProcess(options);
  started.push(asked);
  return asked;
}

const ask = (asked: TimetableProcess, path: string, dagId = "x") => asked.call({ bundle: path, dagId, call });

it("answers one request after the other in one process", async () => {
  const asked = asker();
  const pid = await bundle(
    "return { ok: true, due: { ...call, logicalDate: process.pid, intervalStart: 1, intervalEnd: 1, runAfter: 1 } };",
  );
  const found = await Promise.all([ask(asked, pid), ask(asked, pid), ask(asked, pid)]);
  expect(new Set(found.map((each) => each?.logicalDate)).size).toBe(1);
  expect(await ask(asked, await bundle("return { ok: true, due: null };"))).toBeNull();
});

it("ends an idle process, and starts another on demand", async () => {
  const asked = asker({ idleMs: 1 });
  const pid = await bundle(
    "return { ok: true, due: { logicalDate: process.pid, intervalStart: 1, intervalEnd: 1, runAfter: 1 } };",
  );
  const first = (await ask(asked, pid))?.logicalDate ?? 0;
  await gone(first);
  expect((await ask(asked, pid))?.logicalDate).not.toBe(first);
});

it.each([
  [
    "an error with a code",
    'return { ok: false, error: { name: "E", message: "m", stack: null, code: "C" } };',
    "C",
    /^m$/,
  ],
  [
    "an error without",
    'return { ok: false, error: { name: "E", message: "m", stack: null, code: null } };',
    "TIMETABLE_THREW",
    /^E: m$/,
  ],
  ["one that rejects", 'throw new RangeError("m");', "TIMETABLE_THREW", /^RangeError: m$/],
  ["a message without end", 'throw new Error("x".repeat(1e7));', "TIMETABLE_THREW", /^Error: x{3000,4000}$/],
  ["no answer", "return { ok: true };", "TIMETABLE_NONSENSE", /no answer/],
  ["half a run", "return { ok: true, due: { logicalDate: 1 } };", "TIMETABLE_NONSENSE", /no answer/],
  [
    "a run beyond all years",
    "return { ok: true, due: { logicalDate: 9e15, intervalStart: 1, intervalEnd: 1, runAfter: 1 } };",
    "TIMETABLE_NONSENSE",
    /no answer/,
  ],
  [
    "too long an answer",
    'return { ok: true, due: { x: "x".repeat(1e6) } };',
    "TIMETABLE_NONSENSE",
    /message without end/,
  ],
  ["an end", 'console.log("bye"); process.exit(7);', "TIMETABLE_CRASHED", /exit code 7; it printed: bye/],
  [
    "a full heap",
    "const all = []; for (;;) all.push(new Array(1e5).fill(all.length));",
    "TIMETABLE_CRASHED",
    /SIGABRT|heap/,
  ],
  ["an endless loop", "for (;;);", "TIMETABLE_TIMEOUT", /did not answer within 4 s/],
  [
    "a promise that never settles",
    "await new Promise(() => {});",
    "TIMETABLE_TIMEOUT",
    /did not answer within 4 s/,
  ],
])("reports %s, and answers the next request", async (_, code, expected, message) => {
  const asked = asker({ answerMs: 4_000, heapMb: 64 });
  const bundles = [await bundle(code), await bundle(GOOD)];
  const [bad, good] = await Promise.allSettled(bundles.map((each) => ask(asked, each)));
  expect(bad).toMatchObject({ status: "rejected", reason: { code: expected } });
  expect(String((bad as PromiseRejectedResult).reason.message)).toMatch(message);
  expect(good).toEqual({ status: "fulfilled", value: due });
});

it("reports a bundle that cannot be imported, has no such DAG, or no timetable", async () => {
  const asked = asker();
  await expect(ask(asked, await bundle(GOOD, 'throw new Error("at import");'))).rejects.toThrow("at import");
  await expect(ask(asked, await bundle(GOOD), "y")).rejects.toMatchObject({ code: "BUNDLE_WITHOUT_DAG" });
  await expect(ask(asked, join(folder, "missing.mjs"))).rejects.toMatchObject({
    code: "ERR_MODULE_NOT_FOUND",
  });
});

it("stops at once, and rejects the pending request", async () => {
  const asked = asker();
  const hanging = ask(asked, await bundle("for (;;);"));
  const told = expect(hanging).rejects.toMatchObject({ code: "TIMETABLE_CRASHED" });
  await asked.stop();
  await told;
  await expect(ask(asked, await bundle(GOOD))).rejects.toMatchObject({ code: "TIMETABLE_CRASHED" });
});

it("dies with its scheduler, even in an endless loop", async () => {
  const pidFile = join(folder, "pid");
  const path = await bundle(
    `writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); for (;;);`,
    'import { writeFileSync } from "node:fs";',
  );
  const module = pathToFileURL(join(import.meta.dirname, "timetable-process.ts")).href;
  const script = `import { TimetableProcess } from ${JSON.stringify(module)};
    await new TimetableProcess().call(${JSON.stringify({ bundle: path, dagId: "x", call })});`;
  const parent = spawn(process.execPath, ["--conditions=source", "--input-type=module", "-e", script], {
    stdio: "ignore",
  });
  const pid = Number(await eventually(() => readFile(pidFile, "utf8").catch(() => "")));
  parent.kill("SIGKILL");
  await gone(pid);
});

it("validates an answer before use", () => {
  expect(readAnswer({ n: 1, outcome: { ok: true, due } })).toEqual({ n: 1, outcome: { ok: true, due } });
  for (const raw of [
    null,
    5,
    {},
    { n: 1 },
    { n: 1, outcome: null },
    { n: "1", outcome: { ok: true, due: null } },
  ])
    expect(readAnswer(raw)).toBeNull();
  expect(readAnswer({ n: 1, outcome: { ok: false, error: { name: 5 } } })).toBeNull();
  expect(readAnswer({ n: 1, outcome: { ok: true, due: { ...due, runAfter: "5" } } })).toBeNull();
});

async function eventually(look: () => Promise<string>): Promise<string> {
  for (let i = 0; i < 1_500; i++) {
    const found = await look();
    if (found !== "") return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("timed out");
}

async function gone(pid: number): Promise<void> {
  await eventually(async () => {
    try {
      process.kill(pid, 0);
      return "";
    } catch {
      return "gone";
    }
  });
}
