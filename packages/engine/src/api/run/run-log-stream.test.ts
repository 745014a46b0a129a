import { appendFile, mkdir, symlink, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { eventLines } from "../../../test/support/event-lines.ts";
import { adhoc } from "../../store/database/database.ts";

let tw: Installation;
let base: string;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "b" }, { taskId: "callbacks" }]));
  await tw.app.listen({ port: 0, host: "127.0.0.1" });
  base = `http://127.0.0.1:${(tw.app.server.address() as AddressInfo).port}/api/v2/dags/etl/dagRuns`;
});

interface Line {
  readonly task_id: string | null;
  readonly map_index: number;
  readonly try_number: number | null;
  readonly attempt: string;
  readonly line: { readonly event: string };
}

const line = (ms: number, message: string, level = "info") =>
  `${JSON.stringify({ t: new Date(Date.UTC(2026, 0, 1) + ms).toISOString(), level, source: "task", message })}\n`;

async function write(run: number, file: string, ...lines: string[]): Promise<void> {
  const path = join(tw.logsDir, "etl", String(run), file);
  await mkdir(dirname(path), { recursive: true });
  await appendFile(path, lines.join(""));
}

async function open(runId: string, query: string): Promise<AsyncGenerator<Line | "end">> {
  const response = await fetch(`${base}/${runId}/logs/stream?${query}`, {
    headers: { authorization: `Bearer ${tw.token}` },
  });
  expect(response.status).toBe(200);
  return parse(response);
}

async function* parse(response: Response): AsyncGenerator<Line | "end"> {
  for await (const each of eventLines(response)) {
    if (each === "event: end") yield "end";
    else if (each.startsWith('data: {"task_id')) yield JSON.parse(each.slice(6)) as Line;
  }
}

async function read(runId: string, query = ""): Promise<string[]> {
  const shown: string[] = [];
  for await (const each of await open(runId, query)) shown.push(show(each));
  return shown;
}

function show(each: Line | "end"): string {
  if (each === "end") return each;
  return `${each.task_id} ${each.map_index} ${each.try_number} ${each.line.event}`;
}

test("merges the logs of all tasks, map indexes and tries by time", async () => {
  const run = await tw.addRun("etl", { runId: "merged", state: "success" });
  await write(run, "a/-1/1-x.log", line(1, "a1"), line(4, "a4"), line(9, "a9"));
  await write(run, "b/0/1-y.log", line(2, "b2"), line(4, "b4"));
  await write(run, "b/1/2-z.log", line(3, "b3", "error"), line(8, "b8"));
  await write(run, "b/1/2-z.trigger.log", line(5, "waits"));
  await write(run, "callbacks/run-1.log", line(10, "told"));
  await write(run, "callbacks/-1/1-x.log", line(6, "a task of that name"));
  await write(run, "b/1/notes.txt", line(0, "not a log"));
  const outside = join(tw.logsDir, "outside.log");
  await writeFile(outside, line(0, "outside of the logs of the run"));
  await symlink(outside, join(tw.logsDir, "etl", String(run), "b/1/1-link.log"));
  expect(await read("merged")).toEqual([
    "a -1 1 a1",
    "b 0 1 b2",
    "b 1 2 b3",
    "a -1 1 a4",
    "b 0 1 b4",
    "b 1 2 waits",
    "callbacks -1 1 a task of that name",
    "b 1 2 b8",
    "a -1 1 a9",
    "end",
  ]);
  expect(await read("merged", "callbacks=true&task_id=a")).toEqual([
    "a -1 1 a1",
    "a -1 1 a4",
    "a -1 1 a9",
    "null -1 null told",
    "end",
  ]);
  expect(await read("merged", "level=error")).toEqual(["b 1 2 b3", "end"]);
});

test("merges logs larger than one read", async () => {
  const run = await tw.addRun("etl", { runId: "large", state: "success" });
  const padding = "x".repeat(400);
  for (const [index, task] of ["a", "b"].entries()) {
    const lines = Array.from({ length: 1_000 }, (_, at) =>
      line(2 * at + index, `${2 * at + index} ${padding}`),
    );
    await write(run, `${task}/-1/1-x.log`, ...lines);
  }
  const numbers = (await read("large")).slice(0, -1).map((each) => Number(each.split(" ")[3]));
  expect(numbers).toEqual(Array.from({ length: 2_000 }, (_, at) => at));
});

test("follows a run from before its first line to its end, with tasks that start later", async () => {
  const run = await tw.addRun("etl", { runId: "followed", state: "running" });
  const lines = await open("followed", "follow=true");
  const next = async () => show((await lines.next()).value as Line);
  await write(run, "a/-1/1-x.log", line(1, "first"));
  expect(await next()).toBe("a -1 1 first");
  await write(run, "b/3/1-y.log", line(2, "of another task"));
  expect(await next()).toBe("b 3 1 of another task");
  await write(run, "a/-1/1-x.log", line(3, "second"));
  expect(await next()).toBe("a -1 1 second");
  await write(run, "b/3/1-y.log", line(4, "last"));
  await tw.options.database.rows(adhoc("UPDATE dag_run SET state = 'success' WHERE id = $1"), [run]);
  tw.wakeUps.send("ended");
  expect(await next()).toBe("b 3 1 last");
  expect((await lines.next()).value).toBe("end");
});

test("rejects an unknown run and an unknown level", async () => {
  expect((await tw.call("GET", "/dags/etl/dagRuns/nope/logs/stream")).statusCode).toBe(404);
  expect((await tw.call("GET", "/dags/etl/dagRuns/merged/logs/stream?level=loud")).statusCode).toBe(422);
});
