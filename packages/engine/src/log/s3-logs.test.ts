/** Logs of tasks in a bucket: its objects, outages, and an API server on another machine. */

import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Installation, logLine, manifestOf } from "../../test/api/installation.ts";
import { ExecutorUnderTest, SECRETS, SERVICES } from "../../test/execute/executor-under-test.ts";
import { eventLines } from "../../test/support/event-lines.ts";
import { s3Server, type TestS3Server } from "../../test/support/s3-server.ts";
import type { LogStore } from "./log-store.ts";
import { openLogStore } from "./open-log-store.ts";
import { readLines } from "./task-log.ts";

let server: TestS3Server;
let restore: () => void;
let location: string;
let places = 0;

beforeAll(async () => {
  server = await s3Server(["logs"]);
  restore = server.asEnvironment();
});

afterAll(() => restore());

beforeEach(() => {
  location = `s3://logs/${++places}`;
});

async function open(): Promise<LogStore> {
  const logs = await openLogStore(location, "/nowhere");
  onTestFinished(() => logs.close());
  return logs;
}

async function messages(logs: LogStore, key: string): Promise<string[]> {
  const folder = key.slice(0, key.lastIndexOf("/"));
  for await (const log of logs.view([folder]).changed({ isAll: true }))
    if (log.key === key) return (await readLines(log, { limit: 1e9 })).lines.map(({ message }) => message);
  return [];
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Lines that a task receives one by one. */
function recital() {
  const waiting: PromiseWithResolvers<string>[] = [];
  const said: string[] = [];
  const offer = () => {
    while (waiting.length > 0 && said.length > 0) waiting.shift()!.resolve(said.shift()!);
  };
  return {
    say: (text: string) => {
      said.push(text);
      offer();
    },
    services: {
      ...SERVICES,
      variable: () => {
        const asked = Promise.withResolvers<string>();
        waiting.push(asked);
        offer();
        return asked.promise;
      },
    },
  };
}

const KEY = "etl/7/load/-1/1-a.log";

describe("objects", () => {
  const keys = async () =>
    (await server.keys("logs"))
      .filter((key) => key.startsWith(`${places}/`))
      .map((key) => key.slice(`${places}/${KEY}/`.length));

  it("are one for a small log, and named by the bytes that they hold", async () => {
    const logs = await open();
    const text = logLine("one") + logLine("two");
    const log = logs.open(KEY, { onPressure: () => {}, onError: () => {} });
    log.append(logLine("one"));
    log.append(logLine("two"));
    await log.close();
    expect(await keys()).toEqual([`000000000000-${String(text.length).padStart(12, "0")}`]);
  });

  it("are few for a log that grows slowly", async () => {
    const logs = await open();
    let offset = 0;
    for (let at = 0; at < 150; at++) offset = await logs.append(KEY, offset, Buffer.alloc(1_000, "x"));
    expect(await keys()).toEqual([
      "000000000000-000000066000",
      "000000066000-000000132000",
      "000000132000-000000150000",
    ]);
  });

  it("may be missing at the beginning: a bucket can delete old ones", async () => {
    const logs = await open();
    const first = logLine("x".repeat(70_000));
    await logs.append(KEY, 0, Buffer.from(first));
    await logs.append(KEY, first.length, Buffer.from(logLine("second")));
    const [oldest] = await keys();
    await server.delete("logs", `${places}/${KEY}/${oldest}`);
    expect(await messages(logs, KEY)).toEqual(["second"]);
  });

  it("may overlap: a request of a stopped server arrives late", async () => {
    const logs = await open();
    await logs.append(KEY, 0, Buffer.from(logLine("one")));
    await logs.append(KEY, logLine("one").length, Buffer.from(logLine("two")));
    const name = `000000000000-${String(logLine("one").length).padStart(12, "0")}`;
    await server.put("logs", `${places}/${KEY}/${name}`, logLine("one"));
    expect(await keys()).toHaveLength(2);
    expect(await messages(logs, KEY)).toEqual(["one", "two"]);
    expect(await logs.begin(KEY)).toBe(logLine("one").length + logLine("two").length);
  });
});

describe("a task", () => {
  const place = { logKey: KEY };

  it("has its whole log in the bucket when its end is reported, without secrets", async () => {
    await using under = await ExecutorUnderTest.start({ logs: await open() });
    await under.run("leak", place);
    const found = await messages(await open(), KEY);
    expect(found).toEqual(expect.arrayContaining(["password=***", "split ***", "token ***", "raw ***"]));
    expect(found).toContain("Error: cannot log in with ***");
    expect(found.join("\n")).not.toContain(SECRETS.token);
  });

  it("that logs more than a chunk at once loses no line", async () => {
    await using under = await ExecutorUnderTest.start({ logs: await open() });
    await under.run("flood", { ...place, conf: { kilobytes: 5_000 } });
    const lines = (await messages(await open(), KEY)).filter((text) => text.startsWith("xxx"));
    expect(lines).toHaveLength(5_000);
  });

  it("succeeds while the store is away, and its lines are stored when the store is back", async () => {
    const { say, services } = recital();
    await using under = await ExecutorUnderTest.start({ logs: await open(), services });
    const long = under.submit("recite", place);
    say("before");
    await until(async () => (await messages(await open(), KEY)).includes("before"));
    await server.down();
    say("during");
    expect(await under.run("talk", { logKey: "etl/7/talk/-1/1-b.log" })).toMatchObject({ kind: "success" });
    await server.up();
    say("after");
    say("end");
    expect(await under.ended(long.id)).toMatchObject({ kind: "success" });
    const logs = await open();
    await until(async () => (await messages(logs, "etl/7/talk/-1/1-b.log")).at(-1) === "Succeeded.");
    await until(async () => (await messages(logs, KEY)).at(-1) === "Succeeded.");
    expect((await messages(logs, KEY)).slice(1)).toEqual(["before", "during", "after", "Succeeded."]);
  }, 60_000);
});

describe("an API server on another machine", () => {
  async function installation(): Promise<{ tw: Installation; run: number; url: string }> {
    const home = await mkdtemp(join(tmpdir(), "tradewind-other-home-"));
    const logs = await openLogStore(location, join(home, "logs"));
    onTestFinished(async () => {
      await logs.close();
      await rm(home, { recursive: true });
    });
    const tw = await Installation.open({ logs });
    await tw.addDag(manifestOf("etl", [{ taskId: "load" }, { taskId: "show" }]));
    const run = await tw.addRun("etl", { runId: "r1" });
    await tw.app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = tw.app.server.address() as AddressInfo;
    return { tw, run, url: `http://127.0.0.1:${port}/api/v2/dags/etl/dagRuns/r1` };
  }

  async function* events(tw: Installation, url: string): AsyncGenerator<string> {
    const response = await fetch(url, { headers: { authorization: `Bearer ${tw.token}` } });
    for await (const each of eventLines(response)) {
      if (each === "event: end") yield "end";
      const data = each.startsWith("data: {") ? JSON.parse(each.slice(6)) : {};
      const found = data.event ?? data.line?.event;
      if (found) yield found;
    }
  }

  it("streams the log of a task while it runs, and ends with it", async () => {
    const { run, tw, url } = await installation();
    await tw.addInstance(run, "load", { state: "running", tryNumber: 1 });
    const { say, services } = recital();
    await using under = await ExecutorUnderTest.start({ logs: await open(), services });
    const stream = events(tw, `${url}/taskInstances/load/logs/1/stream`);
    const { id } = under.submit("recite", { logKey: `etl/${run}/load/-1/1-a.log` });
    say("first");
    expect((await stream.next()).value).toContain('Try 1 of task "recite"');
    expect((await stream.next()).value).toBe("first");
    say("second");
    expect((await stream.next()).value).toBe("second");
    say("third");
    say("end");
    await under.ended(id);
    await tw.sql("UPDATE task_instance SET state = 'success'");
    expect(await Array.fromAsync(stream)).toEqual(["third", "Succeeded.", "end"]);
  });

  it("follows the merged log of a run", async () => {
    const { run, tw, url } = await installation();
    const stream = events(tw, `${url}/logs/stream?follow=true&callbacks=true`);
    const logs = await open();
    const at = (second: number, text: string) =>
      Buffer.from(logLine(text).replace("00:00:00.000", `00:00:0${second}.000`));
    await logs.append(`etl/${run}/load/-1/1-a.log`, 0, at(1, "loads"));
    expect((await stream.next()).value).toBe("loads");
    await logs.append(`etl/${run}/show/0/1-b.log`, 0, at(3, "shows"));
    expect((await stream.next()).value).toBe("shows");
    await logs.append(`etl/${run}/load/-1/1-a.log`, at(1, "loads").length, at(4, "loaded"));
    expect((await stream.next()).value).toBe("loaded");
    await logs.append(`etl/${run}/callbacks/run-1.log`, 0, at(5, "told"));
    await tw.sql("UPDATE dag_run SET state = 'success'");
    tw.wakeUps.send("ended");
    expect(await Array.fromAsync(stream)).toEqual(["told", "end"]);
    expect(await Array.fromAsync(events(tw, `${url}/logs/stream`))).toEqual([
      "loads",
      "shows",
      "loaded",
      "end",
    ]);
  });

  it("pages a try by byte offset, and answers 503 while the store is away", async () => {
    const { run, tw } = await installation();
    await tw.addInstance(run, "load", { state: "success", tryNumber: 1 });
    const logs = await open();
    const texts = Array.from({ length: 400 }, (_, at) => `${at} ${"x".repeat(1_000)}`);
    const content = Buffer.from(texts.map(logLine).join(""));
    await logs.append(`etl/${run}/load/-1/1-a.log`, 0, content.subarray(0, 123_456));
    await logs.append(`etl/${run}/load/-1/1-a.log`, 123_456, content.subarray(123_456));
    const path = "/dags/etl/dagRuns/r1/taskInstances/load/logs/1";
    const seen: string[] = [];
    let pages = 0;
    for (let token: string | null = "0"; token !== null; pages++) {
      const body: { content: { event: string }[]; continuation_token: string | null } = (
        await tw.call("GET", `${path}?token=${token}`)
      ).json();
      seen.push(...body.content.map(({ event }) => event));
      token = body.continuation_token;
    }
    expect(seen).toEqual(texts);
    expect(pages).toBeGreaterThan(1);
    await server.down();
    const answer = await tw.call("GET", path);
    await server.up();
    expect([answer.statusCode, answer.json().code]).toEqual([503, "LOG_STORE_UNAVAILABLE"]);
  });
});
