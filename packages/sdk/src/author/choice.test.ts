import { expect, test } from "vitest";
import { attempt } from "../../test/attempt-call.ts";
import { type BranchChoice, dag, fail, type Group, type Output, skip } from "../index.ts";

/** branch -> a, b, g.c, g.e; a -> join; b -> b2; branch -> join. */
function branching(choose: () => BranchChoice | ReturnType<typeof skip> | ReturnType<typeof fail>) {
  return dag("x", (d) => {
    const branch = d.branch("branch", choose);
    const a = d.task("a", { after: branch }, () => 1);
    const b = d.task("b", { after: branch }, () => 1);
    d.task("b2", { after: b }, () => 1);
    d.group("g", { after: branch }, (g) => {
      g.task("c", () => 1);
      g.task("e", () => 1);
    });
    d.task("join", { after: [branch, a], rule: "noneFailedMinOneSuccess" }, () => 1);
  });
}

test.each<[choice: BranchChoice, output: string[], skip: string[]]>([
  ["a", ["a"], ["b", "g.c", "g.e"]],
  [
    ["a", "b"],
    ["a", "b"],
    ["g.c", "g.e"],
  ],
  ["b", ["b"], ["a", "g.c", "g.e", "join"]],
  ["g", ["g.c", "g.e"], ["a", "b", "join"]],
  ["g.c", ["g.c"], ["a", "b", "g.e", "join"]],
  ["join", ["join"], ["a", "b", "g.c", "g.e"]],
  [[], [], ["a", "b", "g.c", "g.e", "join"]],
  [null, [], ["a", "b", "g.c", "g.e", "join"]],
])("skips the direct tasks that %j does not choose or reach", async (choice, output, skipped) => {
  expect(
    await attempt(
      branching(() => choice),
      "branch",
    ),
  ).toEqual({ kind: "success", output, skip: skipped });
});

test("accepts handles and groups as a choice", async () => {
  let choice: Output<number> | Group | undefined;
  const defined = dag("x", (d) => {
    const branch = d.branch("branch", () => choice);
    const a = d.task("a", { after: branch }, () => 1);
    const g = d.group("g", { after: branch }, (inner) => inner.task("c", () => 1));
    chosen.push(a, g);
  });
  async function follow(target: Output<number> | Group) {
    choice = target;
    return attempt(defined, "branch");
  }
  expect(await follow(chosen[0]!)).toMatchObject({ output: ["a"], skip: ["g.c"] });
  expect(await follow(chosen[1]!)).toMatchObject({ output: ["g.c"], skip: ["a"] });
});
const chosen: (Output<number> | Group)[] = [];

test.each([["b2"], ["nowhere"], ["branch"], [5 as never]])(
  "rejects the choice %j, which is not directly downstream",
  async (choice) => {
    expect(
      await attempt(
        branching(() => choice),
        "branch",
      ),
    ).toMatchObject({
      kind: "failed",
      retry: false,
      error: {
        code: "TW_BRANCH_TARGET",
        message: expect.stringMatching(
          /^branch "branch" chose .*, which is not directly downstream of it; choose among "a", "b"/,
        ),
      },
    });
  },
);

test("lets a branch skip or fail itself", async () => {
  expect(
    await attempt(
      branching(() => skip("no")),
      "branch",
    ),
  ).toEqual({ kind: "skipped", reason: "no" });
  expect(
    await attempt(
      branching(() => fail("no")),
      "branch",
    ),
  ).toMatchObject({ kind: "failed", retry: false });
});

test("skips everything downstream of a short circuit, or only the direct tasks", async () => {
  const defined = (met: unknown) =>
    dag("x", (d) => {
      const all = d.shortCircuit("all", () => met);
      const direct = d.shortCircuit("direct", { respectRules: true }, async () => met);
      const a = d.task("a", { after: [all, direct] }, () => 1);
      const b = d.task("b", { after: a }, () => 1);
      d.task("c", { after: [a, b] }, () => 1);
    });
  for (const met of [true, 1, "yes", {}]) {
    expect(await attempt(defined(met), "all")).toEqual({ kind: "success", output: true, skip: [] });
  }
  for (const unmet of [false, 0, "", null, undefined]) {
    const outcome = await attempt(defined(unmet), "all");
    expect(outcome).toMatchObject({ kind: "success", output: false });
    expect(outcome.kind === "success" && [...outcome.skip].sort()).toEqual(["a", "b", "c"]);
    expect(await attempt(defined(unmet), "direct")).toEqual({ kind: "success", output: false, skip: ["a"] });
  }
});

test("never skips a teardown by a branch or a short circuit", async () => {
  const defined = dag("x", (d) => {
    const cluster = d.setup("create", () => "c");
    const gate = d.shortCircuit("gate", { after: cluster }, () => false);
    const work = d.task("work", { after: gate }, () => 1);
    d.branch("last", { after: work }, () => null);
    d.teardown("delete", { of: cluster }, () => {});
  });
  const outcome = await attempt(defined, "gate");
  expect(outcome.kind === "success" && [...outcome.skip].sort()).toEqual(["last", "work"]);
  expect(await attempt(defined, "last")).toEqual({ kind: "success", output: [], skip: [] });
});
