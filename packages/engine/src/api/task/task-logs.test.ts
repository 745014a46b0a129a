import { appendFile, mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { Installation, logLine, manifestOf } from "../../../test/api/installation.ts";
import { ApiServer } from "../server/api-server.ts";
import { TryLogReader } from "./log-files.ts";

let tw: Installation;
let run: number;
const LOGS = "/dags/etl/dagRuns/r1/taskInstances/a/logs";

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "live" }, { taskId: "quiet" }]));
  run = await tw.addRun("etl", { runId: "r1" });
  await tw.addInstance(run, "a", { state: "success", tryNumber: 2 });
  await tw.addInstance(run, "live", { state: "running", tryNumber: 1 });
  await tw.addInstance(run, "quiet", { state: "success", tryNumber: 1 });
  const place = { dagId: "etl", dagRunId: run, taskId: "a" };
  // The lost attempt sorts last by name, so that only the time can give the right order.
  const lost = await tw.writeLog({ ...place, file: "2-zzzz.log" }, ["lost 1", "lost 2"]);
  await appendFile(lost, '{"t":"half a li');
  await utimes(lost, new Date(1_000_000), new Date(1_000_000));
  await tw.writeLog({ ...place, file: "2-aaaa.log" }, ["second 1", "second 2"]);
  await tw.writeLog({ ...place, file: "1-bbbb.log" }, ["first try"]);
  await tw.writeLog({ ...place, file: "22-cccc.log" }, ["try 22 is another"]);
});

const events = (body: { content: { event: string }[] }) => body.content.map((line) => line.event);

describe("logs", () => {
  test("joins the attempts of a try, and marks the end with a null token", async () => {
    const body = (await tw.call("GET", `${LOGS}/2`)).json();
    expect(body.content[0]).toEqual({
      timestamp: "2026-01-01T00:00:00.000Z",
      level: "info",
      logger: "task",
      event: "lost 1",
    });
    const rest = (await tw.call("GET", `${LOGS}/2?token=${body.continuation_token}`)).json();
    expect([...events(body), ...events(rest)]).toEqual(["lost 1", "lost 2", "second 1", "second 2"]);
    expect(rest.continuation_token).toBeNull();
    expect(events((await tw.call("GET", `${LOGS}/1`)).json())).toEqual(["first try"]);
  });

  test("puts the log of a trigger between the attempts, even if it was written last", async () => {
    const place = { dagId: "etl", dagRunId: run, taskId: "a" };
    const at = (second: number, message: string) =>
      logLine(message).replace("00:00:00.000", `00:00:0${second}.000`);
    const attempt = await tw.writeLog({ ...place, file: "4-x.log" }, []);
    await writeFile(attempt, at(1, "submitted"));
    await writeFile(attempt.replace("4-x", "4-y"), at(5, "resumed"));
    await writeFile(attempt.replace("4-x", "4-x.trigger"), at(3, "looking"));
    const reader = new TryLogReader(
      tw.options.logs,
      { dag_id: "etl", dag_run_id: run, task_id: "a", map_index: -1 } as never,
      4,
    );
    const lines: string[] = [];
    for (let offset = 0; lines.length < 3; ) {
      const chunk = await reader.read(offset, 10);
      lines.push(...chunk.lines.map((line) => line.message));
      offset = chunk.nextOffset;
    }
    expect(lines).toEqual(["submitted", "looking", "resumed"]);
  });

  test("always returns a token for a running try", async () => {
    const path = "/dags/etl/dagRuns/r1/taskInstances/live/logs/1";
    expect((await tw.call("GET", path)).json()).toEqual({ content: [], continuation_token: "0" });
    const file = await tw.writeLog({ dagId: "etl", dagRunId: run, taskId: "live", file: "1-x.log" }, ["one"]);
    const first = (await tw.call("GET", path)).json();
    expect(first.continuation_token).toBe(String(Buffer.byteLength(logLine("one"))));
    await appendFile(file, logLine("zwei ä"));
    expect(events((await tw.call("GET", `${path}?token=${first.continuation_token}`)).json())).toEqual([
      "zwei ä",
    ]);
  });

  test("returns the whole log as NDJSON", async () => {
    const response = await tw.call("GET", `${LOGS}/2`, undefined, { accept: "application/x-ndjson" });
    expect(response.headers["content-type"]).toBe("application/x-ndjson");
    expect(
      response.body
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).event),
    ).toEqual(["lost 1", "lost 2", "second 1", "second 2"]);
  });

  test("returns an empty log for a silent task and a 404 for an unknown try", async () => {
    expect((await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances/quiet/logs/1")).json()).toEqual({
      content: [],
      continuation_token: null,
    });
    expect((await tw.call("GET", `${LOGS}/3`)).json().detail).toContain("has no try 3");
    expect((await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances/nope/logs/1")).statusCode).toBe(404);
  });

  test("splits a large log into consecutive pieces", async () => {
    const messages = Array.from({ length: 3000 }, (_, index) => `${index} ${"x".repeat(200)}`);
    await tw.writeLog({ dagId: "etl", dagRunId: run, taskId: "quiet", file: "1-big.log" }, messages);
    const seen: string[] = [];
    let token: string | null = "0";
    let requests = 0;
    while (token !== null) {
      const body: { content: { event: string }[]; continuation_token: string | null } = (
        await tw.call("GET", `/dags/etl/dagRuns/r1/taskInstances/quiet/logs/1?token=${token}`)
      ).json();
      seen.push(...events(body));
      token = body.continuation_token;
      requests++;
    }
    expect(seen).toEqual(messages);
    expect(requests).toBeGreaterThan(1);
    expect(
      events(
        (await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances/quiet/logs/1?full_content=true")).json(),
      ),
    ).toEqual(messages);
  });
});

describe("paths", () => {
  test("ignores links and names that lead out of the folder", async () => {
    const secret = join(tw.logsDir, "..", `secret-${process.pid}.log`);
    await writeFile(secret, logLine("stolen"));
    const folder = join(tw.logsDir, "etl", String(run), "a", "-1");
    await mkdir(folder, { recursive: true });
    await symlink(secret, join(folder, "1-link.log"));
    expect(events((await tw.call("GET", `${LOGS}/1`)).json())).toEqual(["first try"]);

    await tw.addDag(manifestOf("../..", [{ taskId: ".." }]));
    const evil = await tw.addRun("../..", { runId: "r" });
    await tw.addInstance(evil, "..", { state: "success", tryNumber: 1 });
    const response = await tw.call(
      "GET",
      `/dags/${encodeURIComponent("../..")}/dagRuns/r/taskInstances/${encodeURIComponent("..")}/logs/1`,
    );
    expect(response.body).not.toContain("stolen");
    for (const path of [
      "/dags/..%2f..%2fetc/dagRuns/r1/taskInstances/a/logs/1",
      "/dags/etl/dagRuns/r1/taskInstances/..%2f..%2fa/logs/1",
    ]) {
      expect((await tw.call("GET", path)).statusCode).toBe(404);
    }
  });
});

describe("live", () => {
  interface Event {
    readonly id?: string;
    readonly event?: string;
    readonly lines: string[];
  }

  function parse(text: string): Event[] {
    return text
      .split("\n\n")
      .filter((block) => /^(id|data|event):/m.test(block))
      .map((block) => ({
        id: /^id: (.*)$/m.exec(block)?.[1],
        event: /^event: (.*)$/m.exec(block)?.[1],
        lines: [...block.matchAll(/^data: (.*)$/gm)]
          .map((match) => JSON.parse(match[1]!).event)
          .filter((line) => line !== undefined),
      }));
  }

  test("streams a finished try to its end, and resumes after Last-Event-ID", async () => {
    const all = await tw.call("GET", `${LOGS}/2/stream`);
    expect(all.headers["content-type"]).toBe("text/event-stream");
    const got = parse(all.body);
    expect(got.flatMap((event) => event.lines)).toEqual(["lost 1", "lost 2", "second 1", "second 2"]);
    expect(got.at(-1)).toMatchObject({ event: "end" });
    const rest = parse(
      (await tw.call("GET", `${LOGS}/2/stream`, undefined, { "last-event-id": got[0]!.id! })).body,
    );
    expect(rest.flatMap((event) => event.lines)).toEqual(["second 1", "second 2"]);
    expect((await tw.call("GET", `${LOGS}/2/stream`, undefined, { "last-event-id": "x" })).statusCode).toBe(
      422,
    );
  });

  test("streams lines over a socket while the task runs, and ends with it", async () => {
    await tw.sql("UPDATE task_instance SET try_number = 2 WHERE task_id = 'live'");
    const file = await tw.writeLog({ dagId: "etl", dagRunId: run, taskId: "live", file: "2-y.log" }, []);
    const server = new ApiServer(tw.options);
    await server.start();
    try {
      const response = await fetch(
        `${server.url}/api/v2/dags/etl/dagRuns/r1/taskInstances/live/logs/2/stream`,
        { headers: { authorization: `Bearer ${tw.token}` } },
      );
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = (await reader.read()).value ?? "";
      const until = async (word: string) => {
        while (!text.includes(word)) {
          const { done, value } = await reader.read();
          if (done) throw new Error(`the stream ended before "${word}"`);
          text += value;
        }
      };
      await appendFile(file, logLine("now"));
      await until('"now"');
      await appendFile(file, logLine("last"));
      await tw.sql("UPDATE task_instance SET state = 'success' WHERE task_id = 'live'");
      await until("event: end");
      expect(parse(text).flatMap((event) => event.lines)).toEqual(["now", "last"]);
      expect((await reader.read()).done).toBe(true);
    } finally {
      await server.stop();
    }
  });
});
