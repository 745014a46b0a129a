import { expect, test } from "vitest";
import { type DagBuilder, DagDefinitionError, dag, deadline } from "../index.ts";
import { INSTEAD, OTHER_NAMES } from "./airflow-names.ts";
import { DAG_OPTION_NAMES, TASK_OPTION_NAMES } from "./option-names.ts";

function refusal(options: object, build: (d: DagBuilder) => unknown = one): DagDefinitionError {
  try {
    dag("x", options as never, build as never);
  } catch (error) {
    if (error instanceof DagDefinitionError) return error;
    throw error;
  }
  throw new Error("the DAG was accepted");
}

const one = (d: DagBuilder) => void d.task("t", () => 1);
const messages = ({ errors = [] }: DagDefinitionError) => errors.map(({ message }) => message);

test("reports all wrong options of a DAG, its defaults, groups and tasks in one error", () => {
  const error = refusal(
    { schedule_interval: "@daily", retires: 2, catchup: 1, start: "soon", defaults: { retries: -1 } },
    (d) => {
      const a = d.task("a", { trigger_rule: "all_done", timeout: "never", memory: "lots" } as never, () => 1);
      d.group("g", { docs: 1, colour: "red" } as never, (g) => {
        g.task("b", { after: a, retries: 1.5, every: "x", deadline: 7 } as never, () => 1);
      });
    },
  );
  expect(error.code).toBe("TW_UNKNOWN_OPTION");
  expect(messages(error)).toEqual([
    'dag "x": unknown option "schedule_interval"; it is called "schedule"',
    expect.stringMatching(/^dag "x": unknown option "retires"; did you mean "retries"\? .* of tasks/),
    expect.stringMatching(/^dag "x": start: "soon" is not a moment/),
    'dag "x": catchup must be true or false, got 1',
    'dag "x": defaults: retries must be a whole number of 0 or more, got -1',
    'dag "x", task "a": unknown option "trigger_rule"; it is called "rule"',
    expect.stringMatching(/^dag "x", task "a": timeout: "never" is not a duration/),
    expect.stringMatching(/^dag "x", task "a": memory must be/),
    expect.stringMatching(/^dag "x", group "g": unknown option "colour"; known options: /),
    'dag "x", group "g": docs must be a non-empty text, got 1',
    expect.stringMatching(/^dag "x", task "g.b": every: "x" is not a duration/),
    'dag "x", task "g.b": deadline takes results of deadline(), got 7',
    'dag "x", task "g.b": retries must be a whole number of 0 or more, got 1.5',
  ]);
  expect(error.message).toMatch(/^dag "x" has 13 errors:\n {2}dag "x": .*"schedule" \[TW_UNKNOWN_OPTION\]\n/);
});

test("throws the error itself if there is one", () => {
  const error = refusal({ tagz: [] });
  expect(error.errors).toBeUndefined();
  expect(error.message).toBe('dag "x": unknown option "tagz"; did you mean "tags"?');
});

test("reports a wrong default once, not for each task", () => {
  const error = refusal({ defaults: { retryDelay: "soon", pool: 1, grace: "x" } }, (d) => {
    for (let n = 0; n < 50; n++) d.task(`t${n}`, () => 1);
  });
  expect(messages(error)).toEqual([
    expect.stringMatching(/^dag "x": defaults: retryDelay: "soon"/),
    'dag "x": defaults: pool must be a non-empty text, got 1',
    expect.stringMatching(/^dag "x": defaults: grace: "x"/),
  ]);
});

test("keeps the errors found before the build function throws, without errors that may follow from them", () => {
  const definition = refusal({ tagz: [] }, (d) => d.task("t", { after: 7 } as never, () => 1));
  expect(messages(definition)).toEqual([
    expect.stringContaining('"tagz"'),
    expect.stringContaining("is not a handle"),
  ]);
  const other = refusal({ tagz: [] }, () => {
    throw new TypeError("of the author");
  });
  expect(other.message).toContain('"tagz"');
  expect(other.errors).toBeUndefined();
});

test("throws at once outside of dag(), also after a rejected DAG", () => {
  refusal({ tagz: [] });
  expect(() => deadline({ within: "1h", afterr: "queued" } as never)).toThrow(/"afterr"/);
});

test("reports a DAG inside a build function separately", () => {
  const error = refusal({ tagz: [] }, (d) => {
    expect(() => dag("inner", { ownr: "me" } as never, one)).toThrow(/^dag "inner": unknown option "ownr"/);
    one(d);
  });
  expect(error.message).toMatch(/^dag "x": unknown option "tagz"/);
});

test("shows the first errors of very many", () => {
  const error = refusal({}, (d) => {
    for (let n = 0; n < 100; n++) d.task(`t${n}`, { retires: 1 } as never, () => 1);
  });
  expect(error.errors).toHaveLength(100);
  expect(error.message).toMatch(/has 100 errors:(?:\n.*){20}\n {2}… and 80 more$/);
});

test.each([
  ["task", "execution_timeout", 'it is called "timeout"'],
  ["task", "max_active_tis_per_dag", 'it is called "maxActivePerDag"'],
  ["task", "task_concurrency", 'it is called "maxActivePerDag"'],
  ["task", "pool_slots", 'it is called "poolSlots"'],
  ["task", "depends_on_past", 'it is called "dependsOnPast"'],
  ["task", "retry_delay", 'it is called "retryDelay"'],
  ["task", "on_failure_callback", 'it is called "onFailure"'],
  ["task", "task_id", "leave it out: the id is the first argument"],
  ["task", "provide_context", "leave it out: the second argument of the task function is the context"],
  ["task", "email_on_failure", 'write "onFailure: email({ to, connection })"'],
  ["task", "retry_dealy", 'did you mean "retryDelay"?'],
  ["dag", "timetable", 'it is called "schedule"'],
  ["dag", "dagrun_timeout", 'it is called "runTimeout"'],
  ["dag", "max_active_runs", 'it is called "maxActiveRuns"'],
  ["dag", "doc_md", 'it is called "docs"'],
  ["dag", "constructor", "known options: schedule, "],
])("names the option of a %s to write instead of %s", (place, name, remedy) => {
  const option = { [name]: 1 };
  const error = place === "dag" ? refusal(option) : refusal({}, (d) => d.task("t", option as never, () => 1));
  expect(error.message).toContain(`: unknown option "${name}"; ${remedy}`);
});

test("names only options that exist", () => {
  const known = new Set<string>([...DAG_OPTION_NAMES, ...TASK_OPTION_NAMES]);
  expect(Object.values(OTHER_NAMES).filter((name) => !known.has(name))).toEqual([]);
  expect([...Object.keys(OTHER_NAMES), ...Object.keys(INSTEAD)].filter((name) => known.has(name))).toEqual(
    [],
  );
});

test.each<[string, (a: never, b: never) => unknown]>([
  ["a >> b", (a, b) => a >> b],
  ["[a] >> b", (a, b) => ([a] as never) >> b],
  ["a text", (a) => `${a}`],
])("rejects a handle in %s, which would not order tasks", (_, use) => {
  const error = refusal({}, (d) => {
    const [a, b] = [d.task("first", () => 1), d.task("second", () => 2)];
    use(a as never, b as never);
  });
  expect(error).toMatchObject({ code: "TW_BAD_HANDLE", message: expect.stringContaining('"after: first"') });
});
