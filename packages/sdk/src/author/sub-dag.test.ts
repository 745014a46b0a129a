import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { attempt, RecordingHost, success } from "../../test/attempt-call.ts";
import { type Dag, dag, type Json, type Mapped, type Output, TriggerDagRunOperator } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

const scores = dag(
  "scores",
  { params: z.object({ region: z.string(), top: z.number().default(3) }) },
  (d) => {
    const rows = d.task("rows", () => [1, 2]);
    return d.task("score", { inputs: { rows } }, ({ rows }) => ({ best: Math.max(...rows) }));
  },
);
const both = dag("both", (d) => {
  const a = d.task("a", () => 1);
  return { a, all: d.map("each", { over: ["x"] }, (item) => item.length) };
});
const plain = dag("plain", (d) => {
  d.task("t", () => 1);
});

const manifestOf = (of: Dag) => of[PROGRAM].describe();
const ended = (dagId: string, state: string) => ({
  resumePoint: { method: "ended", kwargs: {}, event: { dagId, runId: "r", logicalDate: null, state } },
});

describe("the result of a DAG", () => {
  test("is the value of its build function if it consists of handles of its own tasks", () => {
    expect(scores[PROGRAM].result).toEqual({ taskId: "score" });
    expect(both[PROGRAM].result).toEqual({ members: { a: "a", all: "each" } });
    expect(plain[PROGRAM].result).toBeUndefined();
    expect(dag("x", (d) => [d.task("t", () => 1)].length)[PROGRAM].result).toBeUndefined();
    const mixed = dag("x", (d) => ({ t: d.task("t", () => 1), n: 7 }));
    expect(mixed[PROGRAM].result).toBeUndefined();
    // The manifest, and so the version, does not contain it.
    expect(JSON.stringify(manifestOf(scores))).not.toContain("result");
  });

  test("is typed", () => {
    expectTypeOf(scores).toEqualTypeOf<Dag<{ region: string; top?: number | undefined }, { best: number }>>();
    expectTypeOf(both).toExtend<Dag<unknown, { readonly a: number; readonly all: readonly number[] }>>();
    expectTypeOf(plain).toExtend<Dag<unknown, null>>();
  });
});

describe("d.dag", () => {
  const parent = dag("parent", (d) => {
    const region = d.task("region", () => "eu");
    d.dag("fixed", scores, { params: { region: "us" }, retries: 2 });
    d.dag("made", scores, {
      inputs: { region },
      params: ({ region }, ctx) => ({ region, top: ctx.tryNumber }),
    });
    d.dag("members", both, { after: region });
    d.dag("nothing", plain);
    d.mapDag("mapped", scores, { over: ["a", "b"], limit: 1, params: (region) => ({ region }) });
  });

  test("is a task of the operator dag that names its DAG", () => {
    const tasks = Object.fromEntries(manifestOf(parent).tasks.map((task) => [task.taskId, task]));
    expect(tasks["fixed"]).toMatchObject({ operator: "dag", dag: "scores", retries: 2 });
    expect(tasks["made"]).toMatchObject({ upstream: ["region"], inputs: { region: { taskId: "region" } } });
    expect(tasks["mapped"]).toMatchObject({
      operator: "dag",
      dag: "scores",
      map: "mapped",
      maxActivePerRun: null,
    });
    // It waits without a slot: the limit counts items, not active instances.
    expect(manifestOf(parent).maps).toMatchObject([{ mapId: "mapped", limit: 1 }]);
    expect(tasks["region"]).not.toHaveProperty("dag");
  });

  test("creates one child run per try and waits for it without a worker", async () => {
    const host = new RecordingHost();
    const outcome = await attempt(parent, "fixed", { host });
    const { runId } = host.runs[0]!;
    expect(host.runs).toEqual([
      { dagId: "scores", runId, conf: { region: "us" }, logicalDate: null, child: true },
    ]);
    expect(outcome).toMatchObject({
      kind: "deferred",
      method: "ended",
      trigger: { kind: "tradewind.dagrun", args: { dagId: "scores", runId, missing: "fail" } },
    });
    await attempt(parent, "fixed", { host, attempt: "another" });
    await attempt(parent, "fixed", { host, tryNumber: 2 });
    expect(host.runs.map((run) => run.runId === runId)).toEqual([true, true, false]);
  });

  test("builds params from its inputs or its item", async () => {
    const host = new RecordingHost();
    await attempt(parent, "made", { host, inputs: { region: success("asia") } });
    await attempt(parent, "mapped", { host, mapIndex: 1, inputs: { item: success("b") } });
    await attempt(parent, "nothing", { host });
    expect(host.runs.map((run) => run.conf)).toEqual([{ region: "asia", top: 1 }, { region: "b" }, {}]);
  });

  test("returns the result of the run", async () => {
    const host = new RecordingHost();
    host.runEndAnswer = { state: "success", tasks: { score: success({ best: 2 }) } };
    const output = async (task: string, dagId: string) =>
      await attempt(parent, task, { host, ...ended(dagId, "success") });
    expect(await output("fixed", "scores")).toMatchObject({ kind: "success", output: { best: 2 } });
    host.runEndAnswer = { state: "success", tasks: { a: success(), each: success([1]) } };
    expect(await output("members", "both")).toMatchObject({ output: { a: null, all: [1] } });
    expect(await output("nothing", "plain")).toMatchObject({ kind: "success", output: null });
    expect(host.runEnds.map(({ tasks }) => tasks)).toEqual([["score"], ["a", "each"]]);
  });

  test("takes over the end state of the run", async () => {
    const host = new RecordingHost();
    const outcome = (state: string) => attempt(parent, "fixed", { host, ...ended("scores", state) });
    expect(await outcome("failed")).toMatchObject({
      kind: "failed",
      retry: true,
      error: {
        code: "TW_DAG_RUN_FAILED",
        message: "run r of dag scores ended as failed; see why with `tradewind runs show scores r`",
      },
    });
    host.runEndAnswer = { state: "success", tasks: { score: { state: "skipped", value: undefined } } };
    expect(await outcome("success")).toMatchObject({
      kind: "skipped",
      reason: expect.stringContaining("task score, which was skipped"),
    });
    host.runEndAnswer = { state: "success", tasks: { score: { state: "failed", value: undefined } } };
    expect(await outcome("success")).toMatchObject({
      kind: "failed",
      error: { code: "TW_DAG_RUN_FAILED", message: expect.stringContaining("its task score is failed") },
    });
  });

  test("warns about a paused DAG", async () => {
    class Paused extends RecordingHost {
      override async triggerRun() {
        return { runId: "r", created: true, isPaused: true };
      }
    }
    const host = new Paused();
    await attempt(parent, "fixed", { host });
    expect(host.lines.at(-1)).toMatchObject({
      level: "warn",
      message: expect.stringContaining("tradewind dags unpause scores"),
    });
  });

  test("rejects a value that is not a DAG, and unknown options", () => {
    const wrong = (child: unknown, options?: object) => () =>
      dag("x", (d) => void d.dag("sub", child as typeof plain, options as never));
    expect(wrong(undefined)).toThrow(
      /dag "x", task "sub": expected a DAG, got undefined; is it defined below\? A DAG cannot be inside itself/,
    );
    expect(wrong("scores")).toThrow(/got "scores"; import it from its file/);
    expect(wrong(plain, { retrie: 1 })).toThrow(/unknown option "retrie"; did you mean "retries"/);
    const mapped = () => dag("x", (d) => void d.mapDag("sub", scores, { over: [1], params: {} as never }));
    expect(mapped).toThrow(/params must be a function of the item/);
  });

  test("infers its types from the DAG", () => {
    dag("types", (d) => {
      expectTypeOf(d.dag("a", scores, { params: { region: "eu" } })).toEqualTypeOf<
        Output<{ best: number }>
      >();
      expectTypeOf(d.dag("b", plain)).toEqualTypeOf<Output<null>>();
      const region = d.task("region", () => "eu");
      d.dag("c", scores, {
        inputs: { region },
        rule: "allDone",
        params: ({ region }) => ({ region: region.state === "success" ? region.value : "none" }),
      });
      const mapped = d.mapDag("d", scores, { over: ["x"], params: (region) => ({ region }) });
      expectTypeOf(mapped).toEqualTypeOf<Mapped<{ best: number }>>();
      // @ts-expect-error it cannot do without params
      d.dag("e", scores);
      // @ts-expect-error nor without all of them
      d.dag("f", scores, { params: {} });
      // @ts-expect-error a region is a text
      d.dag("g", scores, { params: { region: 7 } });
      // @ts-expect-error an item is a number, a region a text
      d.mapDag("h", scores, { over: [1], params: (region) => ({ region }) });
    });
  });
});

describe("TriggerDagRunOperator", () => {
  test("returns the result of a given DAG and the requested outputs", async () => {
    const host = new RecordingHost();
    host.runEndAnswer = {
      state: "success",
      tasks: { score: success({ best: 2 }), count: success(3), gone: { state: "skipped", value: undefined } },
    };
    const of = dag("x", (d) => {
      const run = d.operator(
        "typed",
        new TriggerDagRunOperator({ dag: scores, conf: { region: "eu" }, wait: true }),
      );
      d.task("best", { inputs: { run } }, ({ run }) => {
        expectTypeOf(run.outputs).toEqualTypeOf<{ best: number } | null>();
      });
      const other = d.operator(
        "named",
        new TriggerDagRunOperator({ dagId: "sales", wait: true, outputs: ["count", "gone"] }),
      );
      d.task("rows", { inputs: { other } }, ({ other }) => {
        expectTypeOf(other.outputs).toEqualTypeOf<{ readonly count: Json; readonly gone: Json } | null>();
      });
      const none = d.operator("none", new TriggerDagRunOperator({ dag: plain }));
      d.task("id", { inputs: { none } }, ({ none }) => {
        expectTypeOf(none.runId).toEqualTypeOf<string>();
        // @ts-expect-error nothing was waited for
        return (none.outputs ?? null) as null;
      });
    });
    const run = (dagId: string) => ({ dagId, runId: "r", state: "success" });
    expect(await attempt(of, "typed", { host, ...ended("scores", "success") })).toMatchObject({
      output: { ...run("scores"), outputs: { best: 2 } },
    });
    expect(await attempt(of, "named", { host, ...ended("sales", "success") })).toMatchObject({
      output: { ...run("sales"), outputs: { count: 3, gone: null } },
    });
    host.runEndAnswer = { state: "success", tasks: { count: success(3) } };
    expect(await attempt(of, "named", { host, ...ended("sales", "success") })).toMatchObject({
      error: {
        code: "TW_TASK_UNKNOWN",
        message: expect.stringContaining('of dag sales has no task "gone"; check the ids in outputs'),
        stack: expect.stringMatching(/^TW_TASK_UNKNOWN: run [^\n]*$/),
      },
    });
    expect(await attempt(of, "none", { host })).toMatchObject({ output: { dagId: "plain", state: null } });
    expect(host.runs[0]).not.toHaveProperty("child");
    const refusing = new RecordingHost();
    refusing.triggerRun = () => Promise.reject(new Error("there is no such DAG"));
    expect(await attempt(of, "none", { host: refusing })).toMatchObject({
      error: { stack: "Error: there is no such DAG" },
    });
    const lenient = dag("y", (d) => {
      d.operator(
        "t",
        new TriggerDagRunOperator({ dagId: "sales", wait: true, failOn: [], outputs: ["count"] }),
      );
    });
    expect(await attempt(lenient, "t", { host, ...ended("sales", "failed") })).toMatchObject({
      output: { state: "failed", outputs: null },
    });
  });

  test("rejects contradictory arguments", () => {
    const make = (args: object) => () => new TriggerDagRunOperator(args);
    expect(make({})).toThrow(/give either dagId or dag/);
    expect(make({ dagId: "a", dag: plain })).toThrow(/give either dagId or dag/);
    expect(make({ dag: "a" })).toThrow(/dag must be the result of dag\(\), got "a"/);
    expect(make({ dagId: "a", outputs: ["x"] })).toThrow(/add wait: true/);
    expect(make({ dagId: "a", wait: true, outputs: "x" })).toThrow(/a list of task ids/);
    expect(make({ dag: plain, wait: true, outputs: ["x"] })).toThrow(/remove outputs/);
    // @ts-expect-error its conf needs a region
    new TriggerDagRunOperator({ dag: scores, conf: {} });
  });
});

test("skips the direct downstream tasks of d.latestOnly in an older run", async () => {
  const of = dag("x", (d) => {
    const rows = d.task("rows", () => 1);
    const latest = d.latestOnly("latest", { after: rows });
    expectTypeOf(latest).toEqualTypeOf<Output<boolean>>();
    const mail = d.task("mail", { after: latest }, () => 1);
    d.task("later", { after: mail, rule: "allDone" }, () => 1);
  });
  expect(manifestOf(of).tasks[1]).toMatchObject({ operator: "latestOnly", upstream: ["rows"] });
  const host = new RecordingHost();
  expect(await attempt(of, "latest", { host })).toEqual({ kind: "success", output: true, skip: [] });
  host.latest = false;
  expect(await attempt(of, "latest", { host })).toEqual({ kind: "success", output: false, skip: ["mail"] });
});
