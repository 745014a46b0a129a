import { expect, test } from "vitest";
import { z } from "zod";
import { cron, type Dag, type DagBuilder, dag, isDag, Operator, type Output } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

class Load extends Operator<{ table: string }> {
  override execute() {}
}

function manifestOf(defined: Dag) {
  return defined[PROGRAM].describe();
}

function taskOf(defined: Dag, id: string) {
  return manifestOf(defined).tasks.find((task) => task.taskId === id)!;
}

/** A DAG with the tasks that `body` adds. */
function build(body: (d: DagBuilder) => void): Dag {
  return dag("x", body);
}

test("gives a task the documented defaults", () => {
  expect(
    taskOf(
      build((d) => d.task("only", () => 1)),
      "only",
    ),
  ).toEqual({
    taskId: "only",
    operator: "task",
    upstream: [],
    inputs: {},
    rule: "allSuccess",
    retries: 0,
    retryDelayMs: 300_000,
    retryBackoff: 1,
    maxRetryDelayMs: null,
    timeoutMs: null,
    memoryMb: null,
    pool: "default_pool",
    poolSlots: 1,
    priority: 1,
    weightRule: "downstream",
    queue: "default",
    executor: null,
    isolation: "warm",
    dependsOnPast: false,
    waitForDownstream: false,
    maxActivePerDag: null,
    maxActivePerRun: null,
    group: null,
    role: "work",
    callbacks: { success: false, failure: false, retry: false },
    docs: null,
  });
});

test("writes every option to the manifest", () => {
  const unchanged = {
    pool: "db",
    poolSlots: 2,
    priority: -5,
    weightRule: "absolute",
    queue: "gpu",
    executor: "kubernetes",
    isolation: "fresh",
    waitForDownstream: true,
    maxActivePerDag: 4,
    maxActivePerRun: 1,
    docs: "text",
  } as const;
  const defined = dag(
    "sales",
    {
      schedule: cron("0 2 * * *", "Europe/Berlin"),
      start: "2026-01-01",
      end: new Date("2027-01-01T00:00:00Z"),
      catchup: true,
      maxActiveRuns: 2,
      maxActiveTasks: 3,
      runTimeout: "1h",
      params: z.object({ region: z.string().default("eu") }),
      tags: ["a", "b", "a"],
      owner: "ann",
      description: "Sales",
      docs: "# Sales",
      onSuccess: () => {},
    },
    (d) => {
      d.task(
        "all",
        {
          rule: "oneSuccess",
          retries: 3,
          retryDelay: "10s",
          retryBackoff: true,
          maxRetryDelay: "1h",
          timeout: 5000,
          memory: "2gb",
          ...unchanged,
          onSuccess: () => {},
          onFailure: () => {},
          onRetry: () => {},
        },
        () => 1,
      );
      d.task("others", { retryBackoff: 1.5, memory: 512, dependsOnPast: true }, () => 1);
    },
  );
  const { tasks, groups, paramsSchema, ...settings } = manifestOf(defined);
  expect(settings).toEqual({
    dagId: "sales",
    description: "Sales",
    docs: "# Sales",
    owner: "ann",
    tags: ["a", "b"],
    schedule: { kind: "cron", expression: "0 2 * * *", timezone: "Europe/Berlin", style: "trigger" },
    start: "2026-01-01T00:00:00.000Z",
    end: "2027-01-01T00:00:00.000Z",
    catchup: true,
    maxActiveRuns: 2,
    maxActiveTasks: 3,
    runTimeoutMs: 3_600_000,
    hasParams: true,
    callbacks: { success: true, failure: false },
  });
  expect(paramsSchema).toMatchObject({
    type: "object",
    properties: { region: { type: "string", default: "eu" } },
  });
  expect(groups).toEqual([]);
  expect(tasks[0]).toMatchObject({
    rule: "oneSuccess",
    retries: 3,
    retryDelayMs: 10_000,
    retryBackoff: 2,
    maxRetryDelayMs: 3_600_000,
    timeoutMs: 5000,
    memoryMb: 2048,
    ...unchanged,
    dependsOnPast: true,
    callbacks: { success: true, failure: true, retry: true },
  });
  expect(tasks[1]).toMatchObject({
    retryBackoff: 1.5,
    memoryMb: 512,
    dependsOnPast: true,
    waitForDownstream: false,
  });
});

test("passes the nearest executorConfig on as a whole, and none by default", () => {
  const defaults = { executorConfig: { image: "a", podOverride: { spec: {} } } };
  const { tasks } = manifestOf(
    dag("sales", { defaults }, (d) => {
      d.task("inherits", () => 1);
      d.task("own", { executorConfig: { image: "b", gpu: undefined } }, () => 1);
    }),
  );
  expect(tasks.map(({ executorConfig }) => executorConfig)).toEqual([
    defaults.executorConfig,
    { image: "b" },
  ]);
  expect(manifestOf(build((d) => d.task("t", () => 1))).tasks[0]).not.toHaveProperty("executorConfig");
});

test("returns a frozen DAG whose manifest is frozen JSON", () => {
  const defined = build((d) => d.group("g", (g) => g.task("t", () => 1)));
  expect(isDag(defined)).toBe(true);
  expect(isDag({ kind: "dag", id: "x" })).toBe(false);
  const manifest = manifestOf(defined);
  expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest);
  expect(manifestOf(defined)).toBe(manifest);
  for (const value of [defined, manifest, manifest.tasks, manifest.tasks[0], manifest.tasks[0]!.callbacks]) {
    expect(Object.isFrozen(value)).toBe(true);
  }
});

test("turns inputs and after into edges without duplicates", () => {
  const defined = build((d) => {
    const a = d.task("a", () => 1);
    const b = d.operator("b", new Load({ table: "t" }), { after: a });
    d.task("c", { inputs: { first: a, again: a }, after: [a, b] }, ({ first, again }) => first + again);
    d.task("e", { after: b }, () => {});
  });
  expect(taskOf(defined, "b")).toMatchObject({ operator: "Load", upstream: ["a"], inputs: {} });
  expect(taskOf(defined, "c")).toMatchObject({
    upstream: ["a", "b"],
    inputs: { first: { taskId: "a" }, again: { taskId: "a" } },
  });
  expect(taskOf(defined, "e").upstream).toEqual(["b"]);
});

test("prefixes ids with the group, applies its after to its first tasks, and puts downstream after its last", () => {
  const defined = build((d) => {
    const before = d.task("before", () => 1);
    const outer = d.group("outer", { after: before, docs: "box" }, (g) => {
      const first = g.task("first", () => 1);
      g.group("inner", (h) => {
        const x = h.task("x", { after: first }, () => 1);
        h.task("y", { after: x }, () => 1);
      });
      g.task("alone", () => 1);
    });
    d.task("behind", { after: outer }, () => 1);
  });
  expect(manifestOf(defined).groups).toEqual([
    { groupId: "outer", parent: null, docs: "box" },
    { groupId: "outer.inner", parent: "outer", docs: null },
  ]);
  const edges = Object.fromEntries(manifestOf(defined).tasks.map((task) => [task.taskId, task.upstream]));
  expect(edges).toEqual({
    before: [],
    "outer.first": ["before"],
    "outer.inner.x": ["outer.first"],
    "outer.inner.y": ["outer.inner.x"],
    "outer.alone": ["before"],
    behind: ["outer.inner.y", "outer.alone"],
  });
  expect(taskOf(defined, "outer.inner.x").group).toBe("outer.inner");
});

test("applies defaults from the outside in and ignores undefined", () => {
  const onFailure = () => {};
  const defined = dag("x", { defaults: { retries: 5, queue: "a", onFailure } }, (d) => {
    d.task("plain", { retries: undefined }, () => 1);
    d.group("g", { defaults: { queue: "b" } }, (g) => {
      g.task("inside", { retries: 1 }, () => 1);
    });
  });
  expect(taskOf(defined, "plain")).toMatchObject({ retries: 5, queue: "a", callbacks: { failure: true } });
  expect(taskOf(defined, "g.inside")).toMatchObject({ retries: 1, queue: "b", callbacks: { failure: true } });
});

test("allows one run at a time for a continuous schedule", () => {
  const defined = dag("x", { schedule: "@continuous" }, (d) => void d.task("t", () => 1));
  expect(manifestOf(defined).maxActiveRuns).toBe(1);
});

test("omits the schema of params that have no JSON Schema", () => {
  const bare = {
    "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) },
  } as const;
  expect(manifestOf(dag("x", { params: bare }, (d) => void d.task("t", () => 1)))).toMatchObject({
    hasParams: true,
    paramsSchema: null,
  });
});

/** Invalid definitions that the compiler cannot reject, or that come from plain JavaScript. */
const mistakes: Record<string, [code: string, message: RegExp, make: (d: DagBuilder) => void]> = {
  "duplicate task": [
    "TW_DUPLICATE_ID",
    /dag "x", task "t": the id is already taken/,
    (d) => [d.task("t", () => 1), d.task("t", () => 1)],
  ],
  "task named as a group": [
    "TW_DUPLICATE_ID",
    /task "g"/,
    (d) => [d.group("g", (g) => g.task("t", () => 1)), d.task("g", () => 1)],
  ],
  "bad id": [
    "TW_BAD_ID",
    /task "two words": an id has 1 to 250 of the characters/,
    (d) => d.task("two words", () => 1),
  ],
  "empty id": ["TW_BAD_ID", /task ""/, (d) => d.task("", () => 1)],
  "dots as an id": ["TW_BAD_ID", /task "\.\."/, (d) => d.task("..", () => 1)],
  "long id": ["TW_BAD_ID", /1 to 250/, (d) => d.task("a".repeat(251), () => 1)],
  "long id through groups": [
    "TW_BAD_ID",
    /1 to 250/,
    (d) => d.group("g".repeat(200), (g) => g.task("a".repeat(100), () => 1)),
  ],
  "not a string": ["TW_BAD_ID", /task 5/, (d) => d.task(5 as never, () => 1)],
  "unknown option": [
    "TW_UNKNOWN_OPTION",
    /task "t": unknown option "retrys"; did you mean "retries"\?/,
    (d) => d.task("t", { retrys: 1 } as never, () => 1),
  ],
  "option of another kind": [
    "TW_UNKNOWN_OPTION",
    /"respectRules"; known options: /,
    (d) => d.task("t", { respectRules: true } as never, () => 1),
  ],
  "option of the DAG at a task": [
    "TW_UNKNOWN_OPTION",
    /task "t": unknown option "owner"; "owner" is an option of the DAG: give it to dag\(\)$/,
    (d) => d.task("t", { owner: "me" } as never, () => 1),
  ],
  "option of tasks at a group": [
    "TW_UNKNOWN_OPTION",
    /group "g": .* or for all tasks of the group in "defaults: { pool: … }"$/,
    (d) => d.group("g", { pool: "gpu" } as never, (g) => g.task("t", () => 1)),
  ],
  "rule in defaults": [
    "TW_UNKNOWN_OPTION",
    /group "g": defaults: unknown option "rule"; .* give it to the task; defaults do not take it$/,
    (d) => d.group("g", { defaults: { rule: "allDone" } as never }, (g) => g.task("t", () => 1)),
  ],
  "negative retries": [
    "TW_BAD_OPTION",
    /task "t": retries must be a whole number of 0 or more, got -1/,
    (d) => d.task("t", { retries: -1 }, () => 1),
  ],
  "huge priority": [
    "TW_BAD_OPTION",
    /priority must be a whole number from -2147483647 to 2147483647, got 1000000000000/,
    (d) => d.task("t", { priority: 1e12 }, () => 1),
  ],
  "huge retries": [
    "TW_BAD_OPTION",
    /retries must be a whole number from 0 to 2147483647, got 2147483648/,
    (d) => d.task("t", { retries: 2 ** 31 }, () => 1),
  ],
  "no slots": [
    "TW_BAD_OPTION",
    /poolSlots must be a whole number of 1 or more/,
    (d) => d.task("t", { poolSlots: 0 }, () => 1),
  ],
  "unknown rule": [
    "TW_BAD_OPTION",
    /rule must be one of "allSuccess", .* got "most"/,
    (d) => d.task("t", { rule: "most" as never }, () => 1),
  ],
  "empty pool": ["TW_BAD_OPTION", /pool must be a non-empty text/, (d) => d.task("t", { pool: "" }, () => 1)],
  "backoff below 1": [
    "TW_BAD_OPTION",
    /retryBackoff must be true .* got 0.5/,
    (d) => d.task("t", { retryBackoff: 0.5 }, () => 1),
  ],
  "bad memory": [
    "TW_BAD_OPTION",
    /memory must be a number of MB/,
    (d) => d.task("t", { memory: 0 }, () => 1),
  ],
  "executorConfig that is no object": [
    "TW_BAD_OPTION",
    /executorConfig must be an object, got "ssd"/,
    (d) => d.task("t", { executorConfig: "ssd" as never }, () => 1),
  ],
  "executorConfig that is not JSON": [
    "TW_BAD_OPTION",
    /task "t": executorConfig.podOverride.since is a Date/,
    (d) => d.task("t", { executorConfig: { podOverride: { since: new Date() } } }, () => 1),
  ],
  "callback not a function": [
    "TW_BAD_OPTION",
    /onFailure takes a function, webhook\(\)/,
    (d) => d.task("t", { onFailure: "x" as never }, () => 1),
  ],
  "bad duration": [
    "TW_BAD_DURATION",
    /task "t": retryDelay: "soon" is not a duration/,
    (d) => d.task("t", { retryDelay: "soon" as never }, () => 1),
  ],
  "no time at all": [
    "TW_BAD_DURATION",
    /timeout must be more than 0/,
    (d) => d.task("t", { timeout: 0 }, () => 1),
  ],
  "not a handle": [
    "TW_BAD_HANDLE",
    /task "t": after: "a" is not a handle/,
    (d) => d.task("t", { after: "a" as never }, () => 1),
  ],
  "input not a handle": [
    "TW_BAD_HANDLE",
    /input "rows": an array is not a handle/,
    (d) => d.task("t", { inputs: { rows: [] as never } }, () => 1),
  ],
  "forged handle": [
    "TW_BAD_HANDLE",
    /is not a handle/,
    (d) => d.task("t", { after: { kind: "output", dagId: "x", taskId: "t" } }, () => 1),
  ],
  "group as input": [
    "TW_BAD_HANDLE",
    /input "g" is a group, which has no output; use after/,
    (d) => d.task("t", { inputs: { g: d.group("g", (g) => g.task("t", () => 1)) as never } }, () => 1),
  ],
  "no function": [
    "TW_BAD_OPTION",
    /d\.task takes \(id, function\) or \(id, options, function\)/,
    (d) => d.task("t", {} as never),
  ],
  "function as an operator": [
    "TW_BAD_OPTION",
    /d\.operator takes an instance of an Operator class, got a function; use d\.task/,
    (d) => d.operator("t", (() => 1) as never),
  ],
  "empty group": ["TW_EMPTY_GROUP", /group "g" has no tasks/, (d) => d.group("g", () => 1)],
  "async group": [
    "TW_ASYNC_BUILD",
    /group "g": the build function must not be async/,
    (d) => d.group("g", async (g) => g.task("t", () => 1)),
  ],
  "empty dag": ["TW_EMPTY_DAG", /dag "x" has no tasks/, () => {}],
};

test.each(Object.keys(mistakes))("rejects %s", (name) => {
  const [code, message, make] = mistakes[name]!;
  expect(() => build(make)).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) }),
  );
});

test.each([
  ["TW_BAD_ID", /dag "a b": an id has/, () => dag("a b", (d) => void d.task("t", () => 1))],
  [
    "TW_UNKNOWN_OPTION",
    /"shedule"; did you mean "schedule"/,
    () => dag("x", { shedule: null } as never, () => {}),
  ],
  [
    "TW_BAD_SCHEDULE",
    /dag "x": schedule: "0 2 \* \*" is not a cron/,
    () => dag("x", { schedule: "0 2 * *" }, () => {}),
  ],
  [
    "TW_BAD_OPTION",
    /start: "2026-01-01T00:00" is not a moment; .* "Z" or an offset/,
    () => dag("x", { start: "2026-01-01T00:00" }, () => {}),
  ],
  [
    "TW_BAD_OPTION",
    /end 2025.* is before start 2026/,
    () => dag("x", { start: "2026-01-01", end: "2025-01-01" }, () => {}),
  ],
  ["TW_BAD_OPTION", /catchup needs a start/, () => dag("x", { catchup: true }, () => {})],
  [
    "TW_BAD_OPTION",
    /continuous schedule has one run/,
    () => dag("x", { schedule: "@continuous", maxActiveRuns: 2 }, () => {}),
  ],
  ["TW_BAD_OPTION", /params must be a Standard Schema/, () => dag("x", { params: {} as never }, () => {})],
  ["TW_BAD_OPTION", /tags must be an array/, () => dag("x", { tags: "a" as never }, () => {})],
  ["TW_BAD_OPTION", /takes \(id, build\)/, () => dag("x", {} as never)],
  ["TW_ASYNC_BUILD", /dag "x": the build function/, () => dag("x", async (d) => void d.task("t", () => 1))],
])("rejects an invalid DAG: %s %s", (code, message, make) => {
  expect(make).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
});

test("rejects a handle of another DAG by name", () => {
  let foreign: Output<number> | undefined;
  dag("first", (d) => {
    foreign = d.task("t", () => 1);
  });
  expect(() => dag("second", (d) => void d.task("t", { inputs: { a: foreign! } }, () => 1))).toThrow(
    expect.objectContaining({
      code: "TW_FOREIGN_HANDLE",
      message:
        'dag "second", task "t": input "a": the handle belongs to dag "first"; a task can only depend on tasks of its own DAG',
    }),
  );
});

test("closes a builder after its build function", () => {
  let leaked: DagBuilder | undefined;
  build((d) => {
    leaked = d;
    d.task("t", () => 1);
  });
  expect(() => leaked!.task("late", () => 1)).toThrow(expect.objectContaining({ code: "TW_BUILD_CLOSED" }));
});

test("defines a DAG of 20,000 tasks in 100 groups", () => {
  const defined = build((d) => {
    for (let g = 0; g < 100; g++) {
      const group = d.group(`g${g}`, (inner) => {
        let last: Output<number> | undefined;
        for (let i = 0; i < 199; i++) last = inner.task(`t${i}`, last ? { after: last } : {}, () => i);
      });
      d.task(`after${g}`, { after: group }, () => g);
    }
  });
  expect(manifestOf(defined).tasks).toHaveLength(20_000);
});

test.each([
  ["retries", /give it to the task, or .* "defaults: { retries: … }"; runRetries retries the whole run/],
  ["timeout", /"timeout" is an option of tasks: .*; runTimeout limits the whole run$/],
  ["pool", /"pool" is an option of tasks: .* in "defaults: { pool: … }"$/],
  ["rule", /"rule" is an option of tasks: give it to the task$/],
  ["default_args", /it is called "defaults"$/],
  ["start_date", /it is called "start"$/],
  ["executionTimeout", /it is called "timeout"; "timeout" is an option of tasks/],
])("names the right place of the option %s in an error", (name, message) => {
  expect(() => dag("x", { [name]: 1 } as never, () => {})).toThrow(
    expect.objectContaining({ code: "TW_UNKNOWN_OPTION", message: expect.stringMatching(message) }),
  );
});
