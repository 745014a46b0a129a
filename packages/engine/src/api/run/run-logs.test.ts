import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { Installation, logLine, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let run: number;
const LOGS = "/dags/etl/dagRuns/r1/logs";

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }]));
  run = await tw.addRun("etl", { runId: "r1" });
  await tw.addRun("etl", { runId: "silent" });
});

async function write(kind: string, file: string, text: string): Promise<void> {
  const folder = join(tw.logsDir, "etl", String(run), kind);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, file), text);
}

const at = (second: number, message: string) =>
  logLine(message).replace("00:00:00.000", `00:00:0${second}.000`);

/** Reads all pieces. */
async function read(): Promise<string[]> {
  const events: string[] = [];
  for (let token: string | null = "0"; token !== null; ) {
    const body: { content: { event: string }[]; continuation_token: string | null } = (
      await tw.call("GET", `${LOGS}?token=${token}`)
    ).json();
    events.push(...body.content.map(({ event }) => event));
    token = body.continuation_token;
  }
  return events;
}

test("returns an empty log if nothing was logged", async () => {
  expect((await tw.call("GET", "/dags/etl/dagRuns/silent/logs")).json()).toEqual({
    content: [],
    continuation_token: null,
  });
});

test("orders callbacks and onSignal by their first lines", async () => {
  await write("callbacks", "run-9.log", at(5, 'Callback "failure" of run "r1".') + at(9, "mailed"));
  await write("callbacks", "a-1.log", at(3, 'Callback "retry" of task "a".'));
  await write("signals", "a-2.log", at(4, 'Signal "paid", version 7, for task "a".'));
  await write("callbacks", "notes.txt", at(1, "not a log"));
  const outside = join(tw.logsDir, "secret.log");
  await writeFile(outside, at(1, "not ours"));
  await symlink(outside, join(tw.logsDir, "etl", String(run), "callbacks", "link.log"));
  expect(await read()).toEqual([
    'Callback "retry" of task "a".',
    'Signal "paid", version 7, for task "a".',
    'Callback "failure" of run "r1".',
    "mailed",
  ]);
});

test("returns 404 for an unknown run", async () => {
  const answer = await tw.call("GET", "/dags/etl/dagRuns/nope/logs");
  expect([answer.statusCode, answer.json().code]).toEqual([404, "NOT_FOUND"]);
  expect((await tw.call("GET", `${LOGS}?token=-1`)).statusCode).toBe(422);
});
