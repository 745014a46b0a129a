import { expect, test } from "vitest";
import { compile } from "./compile.ts";

/** A chain with two inputs per task and nested outputs, like a large real DAG. */
function chain(tasks: number): string {
  const lines = Array.from(
    { length: tasks },
    (
      _,
      i,
    ) => `  const t${i + 2} = d.task("t${i + 2}", { inputs: { a: t${i}, b: t${i + 1} }, retries: 2 }, async ({ a, b }, ctx) =>
    ({ n: a.n + b.n, at: ctx.run.id, nested: { list: [{ id: ${i}, name: b.at }], more: a.nested } }));`,
  );
  return `import { dag } from "tradewind";
dag("chain", (d) => {
  const t0 = d.task("t0", () => ({ n: 0, at: "", nested: { list: [{ id: 0, name: "" }] } }));
  const t1 = d.task("t1", () => ({ n: 1, at: "", nested: { list: [{ id: 0, name: "" }] } }));
${lines.join("\n")}
});`;
}

test("type-checks each task with a bounded number of instantiations, the same for the 200th as for the first", async () => {
  const cost = async (tasks: number) => {
    const { errors, instantiations } = await compile({ chain: chain(tasks) });
    expect(Object.fromEntries(errors)).toEqual({});
    return instantiations;
  };
  const [none, half, full] = [await cost(0), await cost(100), await cost(200)];
  const perTask = (full - none) / 200;
  expect(perTask).toBeLessThan(500);
  expect(full - half).toBeLessThan(1.2 * (half - none));
});

/** Operators that defer twice, each a class of its own. */
function operators(count: number): string {
  const classes = Array.from(
    { length: count },
    (_, i) => `class Op${i} extends Operator<{ path: string }, number> {
  async execute() { return this.defer({ trigger: new FileTrigger(this.args), method: "one", kwargs: { n: ${i}, list: [{ a: "" }] } }); }
  async one(_ctx: TaskContext, event: FileEvent, kwargs: { n: number; list: { a: string }[] }) {
    return event.size > 0 ? kwargs.n : this.defer({ trigger: new FileTrigger(this.args), method: "two" });
  }
  two(_ctx: TaskContext, event: FileEvent) { return event.size; }
}`,
  );
  return `import { dag, type FileEvent, FileTrigger, Operator, type TaskContext } from "tradewind";
${classes.join("\n")}
void [FileTrigger, Operator] as unknown as [TaskContext, FileEvent];
dag("operators", (d) => {
  d.task("t", () => 1);
${classes.map((_, i) => `  d.operator("op${i}", new Op${i}({ path: "/a" }));`).join("\n")}
});`;
}

test("type-checks a deferral with a bounded number of instantiations", async () => {
  const cost = async (count: number) => {
    const { errors, instantiations } = await compile({ operators: operators(count) });
    expect(Object.fromEntries(errors)).toEqual({});
    return instantiations;
  };
  // The first operator includes the shared cost.
  const [one, more] = [await cost(1), await cost(51)];
  expect((more - one) / 50).toBeLessThan(1_000);
});
