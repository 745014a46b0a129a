/** The environment of tasks: the variables passed on from the service, and those set by `env` of a DAG or a task. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { ExecutorUnderTest, SECRETS, SERVICES } from "../../test/execute/executor-under-test.ts";
import { userEnvironment } from "../service/user-environment.ts";

// Other test files share this process.
afterEach(() => vi.unstubAllEnvs());

const SOURCE = `
import { execFileSync } from "node:child_process";
import { connection, dag, Operator, signal, variable } from "@tradewind/sdk";

const db = connection("db");
const look = () => ({ pid: process.pid, ...process.env });
class Asked extends Operator {
  constructor() { super(); this.setSignal(signal("rows")); }
  execute() {}
  onSignal() { return process.env.MODE === "batch" ? "START" : "NONE"; }
}

const withEnv = dag("with_env", {
  env: { MODE: "batch", TZ: "Asia/Tokyo", PGHOST: db.host, PGPORT: db.port, API: variable("plain") },
  onFailure: (ctx) => console.log("callback in " + process.env.MODE),
}, (d) => {
  d.task("look", look);
  d.task("own", { env: { MODE: "own", EXTRA: db.extra("sslmode"), REGION: variable("nowhere", "eu") } }, look);
  d.task("program", () => execFileSync(process.execPath, ["-p", "process.env.MODE"], { encoding: "utf8" }).trim());
  d.task("zone", () => new Date(0).getHours());
  d.task("changes", () => { process.env.MODE = "changed"; return look(); });
  d.task("deletes", () => { delete process.env.MODE; return look(); });
  d.task("defines", () => {
    Object.defineProperty(process.env, "LEFT", { value: "x", configurable: true, enumerable: true, writable: true });
  });
  d.task("replaces", () => { process.env = { ...process.env, LEFT: "x" }; });
  d.task("throws", () => { throw new Error("thrown in " + process.env.MODE); });
  d.operator("asked", new Asked());
  d.task("prints", {
    env: { PGPASSWORD: db.password, TOKEN: variable("api_token"), HIDDEN_KEY: variable("plain") },
  }, () => {
    console.log(process.env.PGPASSWORD, process.env.TOKEN, process.env.HIDDEN_KEY);
    throw new Error("with " + process.env.TOKEN);
  });
  d.task("aws", { env: { AWS_PROFILE: "x" } }, () => { throw new Error("AWS_PROFILE is wrong, AWS_REGION is missing"); });
});
const withoutEnv = dag("without_env", (d) => {
  d.task("look", look);
  d.task("zone", () => new Date(0).getHours());
});
const lacking = dag("lacking", {
  env: { MODE: "batch", KEY: variable("nowhere") },
  onFailure: (ctx) => console.log("callback in " + process.env.MODE + " " + ctx.error?.code),
}, (d) => {
  d.task("variable", () => console.log("it ran"));
  d.task("connection", { env: { KEY: connection("gone").host } }, () => console.log("it ran"));
  d.task("field", { env: { KEY: db.schema } }, () => console.log("it ran"));
  d.task("extra", { env: { KEY: db.extra("nothing") } }, () => console.log("it ran"));
  d.task("broken", {
    env: { KEY: variable("broken") },
    onFailure: () => console.log("callback of a task"),
  }, () => console.log("it ran"));
  d.task("replaced", { env: { KEY: "given" } }, () => process.env.KEY);
});
export default [withEnv, withoutEnv, lacking];
`;

type Seen = Record<string, string> & { readonly pid: number };

async function bundled(under: ExecutorUnderTest) {
  const bundleHash = await under.bundle(SOURCE);
  const { run } = under.assignment("any");
  return (dagId: string) => ({ bundleHash, conf: null, run: { ...run, dagId } });
}

/** With one process, which all tasks share while they leave it clean. */
async function started() {
  const under = await ExecutorUnderTest.start({
    parallelism: 1,
    services: {
      ...SERVICES,
      connection: async (id) => (id === "gone" ? undefined : await SERVICES.connection(id)),
    },
  });
  const of = await bundled(under);
  return {
    under,
    of,
    look: (dagId: string, taskId = "look") => under.output<never>(taskId, of(dagId)) as Promise<Seen>,
    log: async (attempt: string) => JSON.stringify(await under.log(attempt)),
    [Symbol.asyncDispose]: () => under[Symbol.asyncDispose](),
  };
}

describe("the environment of the service", () => {
  it("reaches a task only with the allowed variables", async () => {
    vi.stubEnv("DATABASE_URL", "postgres://user:secret@localhost/none");
    vi.stubEnv("TRADEWIND_TASK_COLOUR", "blue");
    vi.stubEnv("SHOP_REGION", "eu");
    vi.stubEnv("OTHER_REGION", "us");
    vi.stubEnv("TRADEWIND_TASK_ENV", "SHOP_*");
    await using under = await ExecutorUnderTest.start();
    const seen = await under.output<Record<string, string>>("env");
    expect(seen).toEqual(userEnvironment(process.env));
    expect(seen).toMatchObject({ TRADEWIND_TASK_COLOUR: "blue", SHOP_REGION: "eu" });
    expect(seen).not.toHaveProperty("OTHER_REGION");
  });
});

describe("env", () => {
  it("is extended by texts, variables and connections, where the task overrides the DAG", async () => {
    await using rig = await started();
    const ofDag = { MODE: "batch", PGHOST: "db.example", PGPORT: "5432", API: "a value" };
    expect(await rig.look("with_env")).toMatchObject(ofDag);
    const own = { ...ofDag, MODE: "own", EXTRA: "prefer", REGION: "eu" };
    expect(await rig.look("with_env", "own")).toMatchObject(own);
  });

  it("is passed to programs that a task starts, and sets the time zone of its process", async () => {
    await using rig = await started();
    expect(await rig.look("with_env", "program")).toBe("batch");
    expect(await rig.look("with_env", "zone")).toBe(9);
    expect(await rig.look("without_env", "zone")).toBe(new Date(0).getHours());
  });

  it("does not leak into the next task of the same process, after any end of the task", async () => {
    await using rig = await started();
    const before = await rig.look("without_env");
    await rig.look("with_env", "own");
    expect(await rig.look("without_env")).toEqual(before);
    expect(await rig.under.run("throws", rig.of("with_env"))).toMatchObject({
      error: { message: "thrown in batch" },
    });
    expect(await rig.look("without_env")).toEqual(before);
    expect(await rig.look("with_env")).toMatchObject({ pid: before.pid, MODE: "batch" });
  });

  it.each(["changes", "deletes", "defines", "replaces"])(
    "does not leak from a task that %s the environment itself",
    async (taskId) => {
      await using rig = await started();
      const { pid: _, ...before } = await rig.look("without_env");
      await rig.look("with_env", taskId);
      const { pid: __, ...after } = await rig.look("without_env");
      expect(after).toEqual(before);
      expect(await rig.look("with_env")).toMatchObject({ MODE: "batch" });
    },
  );

  it("is also set for callbacks and onSignal", async () => {
    await using rig = await started();
    const { run, ...bundle } = rig.of("with_env");
    const callback = rig.under.callback({ ...bundle, run, taskId: null });
    rig.under.executor.submit([callback]);
    await rig.under.event((event) => event.type === "callbackEnded");
    expect(await rig.log(callback.id)).toContain("callback in batch");
    const { id: reactionId } = rig.under.submitReaction("rows", { ...bundle, run, taskId: "asked" });
    expect(await rig.under.answered(reactionId)).toMatchObject({ action: "START" });
    expect(await rig.look("without_env")).not.toHaveProperty("MODE");
  });

  it("is masked in the log and in errors: by the origin of a secret, or by its name", async () => {
    await using rig = await started();
    const { id: attempt } = rig.under.submit("prints", rig.of("with_env"));
    expect(await rig.under.ended(attempt)).toMatchObject({ error: { message: "with ***" } });
    const lines = await rig.under.log(attempt);
    expect(lines).toContainEqual(expect.objectContaining({ message: "*** *** ***" }));
    expect(JSON.stringify(lines)).not.toContain(SECRETS.token);
  });
});

describe("a reference without a value", () => {
  it.each([
    [
      "variable",
      "TW_VARIABLE_MISSING",
      /^env\.KEY: variable "nowhere" is not set; set it with `tradewind variables/,
    ],
    ["connection", "TW_CONNECTION_MISSING", /^env\.KEY: connection "gone" is not stored; /],
    ["field", "TW_CONNECTION_INCOMPLETE", /^env\.KEY: connection "db" has no schema; /],
    [
      "extra",
      "TW_CONNECTION_INCOMPLETE",
      /^env\.KEY: connection "db" has no text, number or boolean "nothing" in/,
    ],
  ])("fails the task without a retry: %s", async (taskId, code, message) => {
    await using rig = await started();
    const { id: attempt } = rig.under.submit(taskId, rig.of("lacking"));
    expect(await rig.under.ended(attempt)).toMatchObject({
      kind: "failed",
      retry: false,
      error: { code, message: expect.stringMatching(message) },
    });
    expect(await rig.log(attempt)).not.toContain("it ran");
  });

  it("is retried if the database could not be queried", async () => {
    await using rig = await started();
    expect(await rig.under.run("broken", rig.of("lacking"))).toMatchObject({
      kind: "failed",
      retry: true,
      error: { code: "TASK_SERVICE_FAILED" },
    });
  });

  it("is not read if the task sets another value", async () => {
    await using rig = await started();
    expect(await rig.look("lacking", "replaced")).toBe("given");
  });

  it("does not prevent a callback, even if the database could not be queried", async () => {
    await using rig = await started();
    const unasked = rig.under.callback({ ...rig.of("lacking"), taskId: "broken" });
    rig.under.executor.submit([unasked]);
    await rig.under.event((event) => event.type === "callbackEnded");
    expect(await rig.log(unasked.id)).toContain("callback of a task");
    const error = { name: "TaskError", message: "", stack: null, code: "TW_VARIABLE_MISSING" };
    const callback = rig.under.callback({ ...rig.of("lacking"), taskId: null, error });
    rig.under.executor.submit([callback]);
    const { id } = callback;
    await rig.under.event((event) => event.type === "callbackEnded" && event.callbackId === id);
    const log = await rig.log(callback.id);
    expect(log).toContain("callback in batch TW_VARIABLE_MISSING");
    expect(log).toContain('env.KEY: variable \\"nowhere\\" is not set');
  });
});

describe("an error that names a variable which is not passed to tasks", () => {
  it("adds a hint to the reason and the log, with the name of the variable only", async () => {
    vi.stubEnv("AWS_REGION", "moon-base-1");
    vi.stubEnv("AWS_PROFILE", "moon");
    await using rig = await started();
    const { id: attempt } = rig.under.submit("aws", rig.of("with_env"));
    const line = "AWS_REGION is set for the scheduler but not passed to tasks: add it to TRADEWIND_TASK_ENV.";
    const outcome = await rig.under.ended(attempt);
    expect(outcome).toMatchObject({
      error: { message: `AWS_PROFILE is wrong, AWS_REGION is missing\n${line}` },
    });
    const lines = await rig.under.log(attempt);
    expect(lines).toContainEqual(expect.objectContaining({ level: "warn", message: line }));
    expect(JSON.stringify([outcome, lines])).not.toContain("moon");
  });

  it("adds no hint if the variable is passed", async () => {
    vi.stubEnv("AWS_REGION", "moon-base-1");
    vi.stubEnv("TRADEWIND_TASK_ENV", "AWS_*");
    await using rig = await started();
    expect(await rig.under.run("aws", rig.of("with_env"))).toMatchObject({
      error: { message: "AWS_PROFILE is wrong, AWS_REGION is missing" },
    });
  });
});
