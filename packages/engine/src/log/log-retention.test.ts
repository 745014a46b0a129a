import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { LogFolder } from "./log-folder.ts";
import { cleanLogs } from "./log-retention.ts";

const DAY = 86_400_000;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-logs-"));
  return () => rm(folder, { recursive: true });
});

const clean = (runs: readonly number[], dryRun = false) =>
  cleanLogs({
    logs: new LogFolder(folder),
    olderThanMs: 30 * DAY,
    dryRun,
    existing: async () => new Set(runs),
  });

async function log(path: string, ageMs: number): Promise<void> {
  const file = join(folder, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, "{}\n");
  const at = new Date(Date.now() - ageMs);
  for (let each = file; each !== folder; each = dirname(each)) await utimes(each, at, at);
}

it("deletes the logs of deleted runs, and no others", async () => {
  await log("etl/1/load/-1/1-a.log", 40 * DAY);
  await log("etl/2/load/-1/1-b.log", 40 * DAY);
  await log("etl/3/load/-1/1-c.log", DAY);
  await log("etl/notes/mine.txt", 40 * DAY);
  await log("old/7/t/-1/1-d.log", 40 * DAY);
  await log("postgres.log", 40 * DAY);

  expect(await clean([2], true)).toBe(2);
  expect(await readdir(join(folder, "etl"))).toHaveLength(4);
  expect(await clean([2])).toBe(2);
  expect((await readdir(folder)).sort()).toEqual(["etl", "postgres.log"]);
  expect((await readdir(join(folder, "etl"))).sort()).toEqual(["2", "3", "notes"]);
  expect(await clean([2])).toBe(0);
});

it("resumes where it was stopped", async () => {
  for (let n = 1; n <= 5; n++) await log(`etl/${n}/t/-1/1-a.log`, 40 * DAY);
  const stop = new AbortController();
  const stopped = await cleanLogs({
    logs: new LogFolder(folder),
    olderThanMs: 30 * DAY,
    dryRun: false,
    existing: async () => new Set(),
    signal: stop.signal,
    onProgress: (done) => {
      if (done === 2) stop.abort();
    },
  });
  expect(stopped).toBe(2);
  expect(await clean([])).toBe(3);
  expect(await readdir(folder)).toEqual([]);
});

it("does nothing where there are no logs", async () => {
  expect(
    await cleanLogs({
      logs: new LogFolder(join(folder, "none")),
      olderThanMs: 0,
      dryRun: false,
      existing: async () => new Set(),
    }),
  ).toBe(0);
});
