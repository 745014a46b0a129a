import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LogGrowth } from "./log-growth.ts";

/** Long enough that no timer ends the wait. */
const forever = { ms: 3_600_000, stop: new AbortController().signal };

let root: string;
let growth: LogGrowth;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "tw-growth-"));
  growth = new LogGrowth(join(root, "etl", "1", "a", "-1"));
});

afterEach(async () => {
  growth.close();
  await rm(root, { recursive: true });
});

it("reports a file in a folder created after the start of the wait", async () => {
  const folder = join(root, "etl", "1", "a", "-1");
  const file = join(folder, "1-x.log");
  const follow = async () => {
    for (let mark = growth.mark(); !existsSync(file); mark = growth.mark()) await growth.after(mark, forever);
  };
  const followed = follow();
  await mkdir(join(root, "etl"));
  await mkdir(folder, { recursive: true });
  await writeFile(file, "one");
  await followed;
});

it("reports a line that is added to a file", async () => {
  const folder = join(root, "etl", "1", "a", "-1");
  await mkdir(folder, { recursive: true });
  const mark = growth.mark();
  await writeFile(join(folder, "1-x.log"), "one");
  await growth.after(mark, forever);
  expect(growth.mark()).toBeGreaterThan(mark);
});
