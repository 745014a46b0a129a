import { type Approval, dag, type Output } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { z } from "zod";
import { after, DagTestError, runDag } from "./index.ts";

const Target = z.object({ region: z.enum(["eu", "us"]) });
const release = dag("release", (d) => {
  const ok = d.approval("ok", { assignees: ["ann", "bo"], timeout: "2d" });
  const target = d.approval("target", { inputs: { ok }, title: ({ ok }) => `After ${ok.by}?`, form: Target });
  d.task("copy", { inputs: { target } }, ({ target }) => target.region);
});
const target = { answer: { region: "eu" } };

test("answers approvals, and passes who did it", async () => {
  const run = await runDag(release, { approvals: { ok: "approve", target } });
  expect(run.outputs).toEqual({ ok: { by: "ann", comment: null }, target: { region: "eu" }, copy: "eu" });
  const named = { by: "bo", comment: "fine" };
  const other = await runDag(release, {
    approvals: {
      ok: named,
      target: ({ title }) => ({ answer: { region: title.includes("bo") ? "us" : "eu" } }),
    },
  });
  expect(other.outputs).toMatchObject({ ok: named, copy: "us" });
});

test("rejects, and times out without an answer", async () => {
  const rejected = await runDag(release, { approvals: { ok: { decision: "reject", comment: "no" } } });
  expect(rejected.state).toBe("success");
  expect(rejected.task("ok")).toMatchObject({ state: "skipped" });
  expect(rejected.task("copy").state).toBe("skipped");
  for (const ok of [undefined, after("3d", "approve" as const)]) {
    const late = await runDag(release, { approvals: { ok, target } });
    expect(late.task("ok").error?.code).toBe("TASK_WAIT_TIMEOUT");
  }
});

test("takes the answer of onTimeout unless an answer comes before it", async () => {
  const later = dag("later", (d) => {
    d.approval("target", { form: Target, timeout: "1d", onTimeout: { answer: { region: "us" } } });
    d.approval("ok", { timeout: "1d", onTimeout: "approve" });
  });
  const silent = await runDag(later);
  expect(silent.outputs).toEqual({ target: { region: "us" }, ok: { by: null, comment: null } });
  const early = await runDag(later, {
    approvals: { target: after("1h", target), ok: after("2d", "reject") },
  });
  expect(early.outputs).toEqual({ target: { region: "eu" }, ok: { by: null, comment: null } });
});

test("answers approvals of sub-DAGs and items", async () => {
  const child = dag("child", (d): Output<Approval> => d.approval("inner"));
  const parent = dag("parent", (d) => {
    d.dag("run", child);
    d.mapGroup("each", { over: ["a", "b"] }, (g, item) => {
      g.approval("ok", { inputs: { item }, title: ({ item }) => item });
    });
  });
  const run = await runDag(parent, {
    approvals: { inner: "approve", "each.ok": ({ title }) => ({ by: title }) },
  });
  expect(run.state).toBe("success");
  expect(run.outputs["run"]).toEqual({ by: "user", comment: null });
  expect(run.outputs["each.ok"]).toEqual([
    { by: "a", comment: null },
    { by: "b", comment: null },
  ]);
});

test.each([
  ['task "ok" waits for an answer, and has no entry', {}],
  ['there is no approval "oh"', { oh: "approve" }],
  ['"cy" may not answer; assigned to: ann, bo', { ok: { by: "cy" } }],
  ['"ok": has no form', { ok: { answer: 1 } }],
  ['"target": has a form', { ok: "approve", target: "approve" }],
  ['"ok": must be "approve", "reject" or { answer: … }', { ok: "yes" }],
  [
    '"target": the form rejects the answer: region: Invalid option',
    { ok: "approve", target: { answer: { region: "asia" } } },
  ],
  ['approvals: the answer to "target" must be JSON', { ok: "approve", target: { answer: 7n } }],
])("refuses: %s", async (message, approvals) => {
  const refused = runDag(release, { approvals: approvals as never });
  await expect(refused).rejects.toThrow(DagTestError);
  await expect(refused).rejects.toThrow(message);
});
