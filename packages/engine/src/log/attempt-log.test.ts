import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ExecutorUnderTest, SECRETS } from "../../test/execute/executor-under-test.ts";
import { MAX_LINE_LENGTH } from "./attempt-log.ts";

const MB = 1024 * 1024;

describe("a task's log", () => {
  test("contains all output of the task, from every source, with level and source", async () => {
    await using under = await ExecutorUnderTest.start();
    const { id: attempt } = under.submit("talk");
    await under.ended(attempt);
    const log = await under.log(attempt);
    const found = log.map(({ level, source, message }) => `${level} ${source}: ${message}`);
    expect(found[0]).toContain('info engine: Try 1 of task "talk"');
    expect(found).toEqual(
      expect.arrayContaining([
        "info task: by the logger",
        "info stdout: by console.log",
        "warn stderr: by console.warn",
        "error stderr: by console.error",
        "debug stdout: by console.debug",
        "info stdout: in two writes",
        "info stdout: by descriptor 1",
        "info stdout: by a subprocess",
        "info stdout: a\ufffd\ufffdb",
        "info stdout: no newline at the end",
      ]),
    );
    expect(log.find(({ source }) => source === "task")?.fields).toEqual({ rows: 3 });
    expect(found.at(-1)).toBe("info engine: Succeeded.");
    for (const { t } of log) expect(new Date(t).toISOString()).toBe(t);
  });

  test("does not exist for a task without output", async () => {
    await using under = await ExecutorUnderTest.start();
    const { id: attempt, logKey } = under.submit("noop");
    await under.ended(attempt);
    await expect(stat(under.logPath(logKey))).rejects.toThrow("ENOENT");
    expect(await under.log(attempt)).toEqual([]);
  });

  test("contains why a task failed, and continues in the same file when the try resumes", async () => {
    await using under = await ExecutorUnderTest.start();
    const logKey = "shared.log";
    await mkdir(join(under.dir, "logs"));
    await writeFile(under.logPath(logKey), '{"half a line of a process that died');
    await under.run("fail", { logKey });
    await under.run("skip", { logKey });
    const messages = (await under.log("shared")).map(({ message }) => message);
    expect(messages).toContain("Error: it went wrong");
    expect(messages.at(-1)).toBe("Skipped: nothing to do.");
    expect(messages[0]).toContain("half a line");
  });

  test("that cannot be written does not affect the task", async () => {
    await using under = await ExecutorUnderTest.start();
    await mkdir(join(under.dir, "logs"));
    await writeFile(under.logPath("file"), "");
    expect(await under.run("talk", { logKey: "file/not-a-folder.log" })).toMatchObject({
      kind: "success",
    });
  });
});

describe("floods", () => {
  test.each(["flood", "floodRaw"])(
    "%s: 100 MB of output are truncated at the limit and do not grow this process",
    async (taskId) => {
      await using under = await ExecutorUnderTest.start({ maxLogBytes: 5 * MB });
      await under.output("pid");
      const before = process.memoryUsage().rss;
      let peak = 0;
      const watch = setInterval(() => {
        peak = Math.max(peak, process.memoryUsage().rss);
      }, 20);
      const { id: attempt, logKey } = under.submit(taskId, { conf: { kilobytes: 100 * 1024 } });
      expect(await under.ended(attempt)).toMatchObject({ kind: "success" });
      clearInterval(watch);
      expect(peak - before).toBeLessThan(80 * MB);
      expect((await stat(under.logPath(logKey))).size).toBeLessThan(6 * MB);
      const log = await readFile(under.logPath(logKey), "utf8");
      expect(log).toContain("has reached its limit of 5242880 bytes");
      expect(log).toContain("of output were dropped");
    },
  );

  test("a log of any size within the limit is complete", async () => {
    await using under = await ExecutorUnderTest.start();
    const { id: attempt } = under.submit("flood", { conf: { kilobytes: 20 * 1024 } });
    await under.ended(attempt);
    const lines = (await under.log(attempt)).filter(({ source }) => source === "stdout");
    expect(lines).toHaveLength(20 * 1024);
    expect(lines.every(({ message }) => message.length === 1023)).toBe(true);
  });

  test("an overlong line is truncated, the next is complete", async () => {
    await using under = await ExecutorUnderTest.start();
    const { id: attempt } = under.submit("longLine");
    await under.ended(attempt);
    const [long, after] = (await under.log(attempt)).filter(({ source }) => source === "stdout");
    expect(long?.message.length).toBeLessThan(MAX_LINE_LENGTH + 50);
    expect(long?.message).toContain(`(${3_000_000 - MAX_LINE_LENGTH} characters cut)`);
    expect(after?.message).toBe("after");
  });
});

test("secrets that a task received are in neither its log nor its error", async () => {
  await using under = await ExecutorUnderTest.start();
  const { id: attempt, logKey } = under.submit("leak");
  const outcome = await under.ended(attempt);
  const log = await readFile(under.logPath(logKey), "utf8");
  const everything = log + JSON.stringify(outcome);
  const { password, token, key } = SECRETS;
  for (const secret of [
    password,
    JSON.stringify(password).slice(1, -1),
    encodeURIComponent(password),
    token,
    key,
  ]) {
    expect(everything).not.toContain(secret);
    expect(everything).not.toContain(JSON.stringify(secret).slice(1, -1));
  }
  expect(everything).not.toContain(Buffer.from(password).toString("base64").slice(4, 20));
  expect(log.match(/p4ss|wörd/)).toBeNull();
  const messages = (await under.log(attempt)).map(({ message }) => message);
  expect(messages).toEqual(expect.arrayContaining(["password=***", "split ***", "token ***", "raw ***"]));
  expect(outcome).toMatchObject({ kind: "failed", error: { message: "cannot log in with ***" } });
});

test("a secret that a module kept is masked in the log of the next task in the same process, too", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const first = under.submit("leak");
  await under.ended(first.id);
  const second = under.submit("leakLater");
  await under.ended(second.id);
  expect(await under.started(second.id)).toBe(await under.started(first.id));
  expect((await under.log(second.id)).map(({ message }) => message)).toContain("kept: ***");
});
