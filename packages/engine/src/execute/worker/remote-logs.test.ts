/** Logs of tasks on a worker: the same as on the scheduler's machine, live, and complete across failures of the API. */
import { randomUUID } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { WorkerRig } from "../../../test/support/worker-rig.ts";
import { adhoc } from "../../store/database/database.ts";
import { insertAssignments } from "../../store/execute/assignments.ts";
import { createVariable } from "../../store/settings/variables.ts";
import { ExecutionClient } from "./execution-client.ts";
import { RemoteLogs } from "./remote-logs.ts";
import { WorkerCalls } from "./worker-calls.ts";

const LOGS = "POST /execution/v1/logs";
const SECRET = "correct-horse-battery-staple";

const DAGS = (root: string) => `
  import { dag } from "tradewind";
  import { existsSync, writeSync } from "node:fs";
  const opened = async (name) => {
    while (!existsSync(${JSON.stringify(`${root}/`)} + name)) await new Promise((go) => setTimeout(go, 5));
  };
  const pause = (ms) => new Promise((go) => setTimeout(go, ms));

  export const varied = dag("varied", {}, (d) => {
    d.task("t", { retries: 0 }, async (_, ctx) => {
      const password = await ctx.variable("db_password");
      console.log("out é€😀 of", password);
      console.error("err\\nin two lines");
      writeSync(1, "raw without an end");
      ctx.log.warn("with fields", { password, nested: { list: [1, "zwei"] } });
      console.log("long " + "x".repeat(100_000));
      console.log("\\u001b[31mred\\u001b[0m \\"quoted\\" \\\\ \\t tab");
      for (let i = 0; i < 3_000; i++) ctx.log.debug("line " + i);
      throw new Error("failed with " + password);
    });
  });

  export const live = dag("live", {}, (d) => {
    d.task("t", async (_, ctx) => {
      for (const part of ["one", "two", "three"]) {
        ctx.log.info("before " + part);
        await opened(part);
      }
      ctx.log.info("last");
    });
  });

  export const steady = dag("steady", {}, (d) => {
    for (const name of ["a", "b", "c", "d"])
      d.task(name, async (_, ctx) => {
        for (let i = 0; i < 100; i++) {
          ctx.log.info(name + " " + i);
          await pause(20);
        }
      });
  });

  export const heavy = dag("heavy", {}, (d) => {
    d.task("t", { retries: 0 }, async (_, ctx) => {
      ctx.log.info("begun");
      await opened("heavy");
      for (let i = 0; i < 4_000; i++) console.log(i + " " + "y".repeat(1_000));
    });
  });

  export const late = dag("late", {}, (d) => {
    d.task("t", { retries: 0 }, async (_, ctx) => {
      ctx.log.info("begun");
      await opened("late");
      ctx.log.info("last");
    });
  });

  export const quick = dag("quick", {}, (d) => {
    for (let n = 0; n < 20; n++) d.task("t" + n, (_, ctx) => ctx.log.info("only " + n));
  });
`;

describe("logs of tasks on a worker", () => {
  let on: WorkerRig;

  beforeAll(async () => {
    on = await WorkerRig.open();
    await on.rig.publish({ "logs.ts": DAGS(on.rig.root) });
    await createVariable(on.rig.db, on.rig.secretBox, {
      key: "db_password",
      value: SECRET,
      description: null,
    });
    await on.worker();
  }, 60_000);
  beforeEach(() => {
    on.proxy.requests.length = 0;
    on.proxy.faults.length = 0;
    on.proxy.fault = () => null;
  });

  const go = (name: string) => writeFile(join(on.rig.root, name), "");
  const runId = async (run: number) => (await on.rig.run(run)).run_id;

  it("equal those of tasks on the scheduler's machine, with secrets masked before they are sent", async () => {
    const remote = await on.rig.trigger("varied");
    expect(await on.rig.ended(remote)).toBe("failed");
    const local = await SchedulerRig.open();
    await local.publish({ "logs.ts": DAGS(local.root) });
    await createVariable(local.db, local.secretBox, { key: "db_password", value: SECRET, description: null });
    await local.scheduler();
    const run = await local.trigger("varied");
    expect(await local.ended(run)).toBe("failed");
    const [found, expected] = [await linesIn(on.rig.root, "varied"), await linesIn(local.root, "varied")];
    expect(expected.length).toBeGreaterThan(3_000);
    expect(found).toEqual(expected);
    expect(JSON.stringify(found)).not.toContain(SECRET);
  });

  it("can be read through the API while the task runs, and are complete when it has ended", async () => {
    const run = await on.rig.trigger("live");
    const lines = async () => on.logLines("live", await runId(run), "t");
    for (const part of ["one", "two", "three"]) {
      await on.rig.until(async () => (await lines()).at(-1) === `before ${part}`, `the line before ${part}`);
      await go(part);
    }
    expect(await on.rig.ended(run)).toBe("success");
    expect(await lines()).toEqual([
      'Try 1 of task "t".',
      ...["before one", "before two", "before three", "last"],
      "Succeeded.",
    ]);
  });

  it("are complete before the end of a short task is reported", async () => {
    const run = await on.rig.trigger("quick");
    expect(await on.rig.ended(run)).toBe("success");
    // Not through the API, which might wait: the files as they are at this moment.
    const lines = await linesIn(on.rig.root, "quick");
    const all = Array.from({ length: 20 }, (_, n) => `only ${n}`);
    expect(
      lines
        .map(({ message }) => message)
        .filter((text) => text?.startsWith("only"))
        .sort(),
    ).toEqual(all.sort());
    expect(lines.filter(({ message }) => message === "Succeeded.")).toHaveLength(20);
  });

  it("of several tasks with a steady flow cost a few requests per second together", async () => {
    const started = performance.now();
    const run = await on.rig.trigger("steady");
    expect(await on.rig.ended(run)).toBe("success");
    const seconds = (performance.now() - started) / 1_000;
    const lines = await linesIn(on.rig.root, "steady");
    expect(lines.filter(({ source }) => source === "task")).toHaveLength(400);
    // Four per second, and a few at each of the four ends, which are sent at once.
    expect(on.proxy.count(LOGS)).toBeLessThanOrEqual(4 * seconds + 12);
  });

  it("have no line twice if answers are lost, and no line missing", async () => {
    on.proxy.fault = (what) => (what === LOGS && on.proxy.count(LOGS) % 2 === 1 ? { kind: "lose" } : null);
    const run = await on.rig.trigger("steady");
    expect(await on.rig.ended(run)).toBe("success");
    expect(on.proxy.faults.length).toBeGreaterThan(2);
    for (const name of ["a", "b", "c", "d"]) {
      const lines = await on.logLines("steady", await runId(run), name);
      expect(lines.slice(1, -1)).toEqual(Array.from({ length: 100 }, (_, i) => `${name} ${i}`));
    }
  });

  it("are complete after a restart of the API in the middle, however much is written meanwhile", async () => {
    const run = await on.rig.trigger("heavy");
    await on.rig.until(
      async () => (await on.logLines("heavy", await runId(run), "t")).includes("begun"),
      "the first line",
    );
    await on.stopApi();
    await go("heavy");
    // More than a megabyte waits: the task is slowed down.
    await on.rig.until(async () => on.proxy.requests.includes(LOGS), "a call that fails");
    await on.startApi();
    expect(await on.rig.ended(run)).toBe("success");
    const lines = await linesIn(on.rig.root, "heavy");
    const numbers = lines
      .filter(({ source }) => source === "stdout")
      .map(({ message }) => message?.split(" ")[0]);
    expect(numbers).toEqual(Array.from({ length: 4_000 }, (_, i) => `${i}`));
  });

  it("precede the end of a task that ends while the API is away, however long", async () => {
    const run = await on.rig.trigger("late");
    const lines = async () => on.logLines("late", await runId(run), "t");
    await on.rig.until(async () => (await lines()).includes("begun"), "the first line");
    await on.stopApi();
    on.proxy.requests.length = 0;
    await go("late");
    await on.rig.until(async () => on.proxy.requests.includes(LOGS), "the last lines");
    // Longer than an executor waits for a log on its own disk.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await on.startApi();
    expect(await on.rig.ended(run)).toBe("success");
    expect((await lines()).slice(1)).toEqual(["begun", "last", "Succeeded."]);
  });

  it("that cannot be stored do not fail the task", async () => {
    await rm(join(on.rig.root, "home", "logs", "live"), { recursive: true, force: true });
    // The folder of the DAG cannot be created.
    await writeFile(join(on.rig.root, "home", "logs", "live"), "");
    const run = await on.rig.trigger("live");
    expect(await on.rig.ended(run)).toBe("success");
    await rm(join(on.rig.root, "home", "logs", "live"));
  });

  it("continue a log that exists, e.g. of a callback that is run again", async () => {
    const client = new ExecutionClient({ url: on.proxy.url, token: on.workerToken });
    const id = randomUUID();
    const logKey = `other/1/callbacks/run-${id}.log`;
    await on.rig.db.rows(HELD_CALLBACK, [id]);
    const row = {
      kind: "callback",
      dagRunId: null,
      taskId: null,
      mapIndex: null,
      executor: "",
      queue: "own",
      config: null,
    } as const;
    await insertAssignments(on.rig.db, [{ ...row, id, priority: 0, config: null, content: { id, logKey } }]);
    const facts = {
      name: "logs",
      hostname: "here",
      pid: 1,
      version: "0",
      protocol: 1,
      slots: 1,
      queues: ["own"],
    };
    const { worker } = await client.post<{ worker: number }>("workers", facts);
    const repeats = { isWanted: () => true, onRetry: () => {} };
    const calls = new WorkerCalls({ ...repeats, client, worker: () => worker });
    const claim = await calls.claim(id);
    const path = join(on.rig.root, "home", "logs", logKey);
    await mkdir(dirname(path), { recursive: true });
    await appendFile(path, '{"message":"before"}\n{"message":"half a li');
    const logs = new RemoteLogs({ calls, claimOf: () => claim! });
    const sink = logs.open(logKey, { onPressure: () => {}, onError: (error) => expect.fail(`${error}`) });
    on.proxy.fault = (what) => (what === LOGS && on.proxy.count(LOGS) === 3 ? { kind: "lose" } : null);
    sink.append('{"message":"a"}\n');
    await sink.close();
    sink.append('{"message":"b"}\n');
    await sink.close();
    expect(await readFile(path, "utf8")).toBe(
      '{"message":"before"}\n{"message":"half a li\n{"message":"a"}\n{"message":"b"}\n',
    );
    expect(on.proxy.faults).toHaveLength(1);
    client.close();
  });
});

/** Of any run, and of this scheduler, which has not submitted it. */
const HELD_CALLBACK = adhoc(
  `INSERT INTO callback (id, dag_run_id, event, owner_job)
   SELECT $1, (SELECT max(id) FROM dag_run), 'success', (SELECT id FROM job WHERE kind = 'scheduler')`,
);

interface Line {
  readonly level?: string;
  readonly source?: string;
  readonly message?: string;
}

/** All log lines of the DAG, without what differs between two runs. */
async function linesIn(root: string, dagId: string): Promise<Line[]> {
  const folder = join(root, "home", "logs", dagId);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".log")).sort();
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), "utf8")));
  return texts.flatMap((text) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => {
        const { t: _, ...rest } = JSON.parse(line) as Line & { t: string };
        return rest;
      }),
  );
}
