import { beforeAll, describe, expect, test } from "vitest";
import { drive, drivenManifest, STARTED_AT } from "../../../test/api/driven.ts";
import { Installation } from "../../../test/api/installation.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(drivenManifest("online"));
  await tw.addJob("scheduler");
});

let serial = 0;

/** The reasons of a task in a new run. */
async function ask(
  taskId: string,
  instance: Parameters<Installation["addInstance"]>[2],
  happens: Parameters<typeof drive>[2] = () => {},
  load = "success",
) {
  const runId = `run-${serial++}`;
  const id = await tw.addRun("online", { runId, startedAt: STARTED_AT });
  await tw.addInstance(id, taskId, instance);
  if (taskId !== "load") await tw.addInstance(id, "load", { state: load });
  await drive(tw, id, happens);
  const body = (await tw.call("GET", `/dags/online/dagRuns/${runId}/taskInstances/${taskId}/why`)).json();
  return (body.reasons as { code: string; message: string; until: string | null }[]).map(
    ({ code, message, until }) => [code, message, ...(until === null ? [] : [until])],
  );
}

describe("task that has not started", () => {
  test("names its signals and the missing ones", async () => {
    expect(await ask("train", {})).toEqual([["SIGNAL", "It waits for a signal: all(a, b)."]]);
    expect(await ask("train", {}, (_, tell) => tell("a"))).toEqual([
      ["SIGNAL", "It waits for a signal: all(a, b); b is missing."],
    ]);
    expect(await ask("ask", {})).toEqual([
      ["SIGNAL", "It waits for a signal, if its onSignal decides so: ask.*."],
    ]);
  });

  test("explains a failing onSignal", async () => {
    const at = "2026-01-01T10:00:04.000Z";
    const asking = { key: "ask.it", version: 12, attempts: 3, error: "no idea", againAt: Date.parse(at) };
    expect(await ask("ask", {}, (each) => each.setFailedOnSignal("ask", asking))).toEqual([
      [
        "ON_SIGNAL_FAILING",
        `Its onSignal failed on ask.it (version 12), 3 times, and is retried at ${at}; later signals wait: no idea.`,
        at,
      ],
      ["SIGNAL", "It waits for a signal, if its onSignal decides so: ask.*."],
    ]);
  });

  test("names its next tick", async () => {
    const at = "2026-01-01T11:00:00.000Z";
    expect(await ask("report", {})).toEqual([["TICK", `Its next tick is at ${at}.`, at]]);
  });

  test("names its upstream as well", async () => {
    expect(await ask("train", {}, () => {}, "running")).toEqual([
      ["SIGNAL", "It waits for a signal: all(a, b)."],
      ["UPSTREAM", "Its rule allSuccess waits for upstream tasks: load is running."],
    ]);
  });

  test("explains a pending start with and without open upstream tasks", async () => {
    const twice: Parameters<typeof ask>[2] = (each) => {
      each.addStart("train");
      each.addStart("train");
    };
    expect(await ask("train", {}, twice, "queued")).toEqual([
      ["START_PENDING", "A start was requested 2 times and is pending."],
      ["UPSTREAM", "Its rule allSuccess waits for upstream tasks: load is queued."],
    ]);
    expect((await ask("train", {}, twice)).map(([code]) => code)).toEqual(["START_PENDING", "READY"]);
  });

  test("needs only its upstream if it needs no start or had one", async () => {
    expect((await ask("load", {})).map(([code]) => code)).toEqual(["READY"]);
    expect((await ask("train", { tryNumber: 1 })).map(([code]) => code)).toEqual(["READY"]);
  });

  test("cannot start in a closed run", async () => {
    expect(await ask("train", {}, (each) => each.close("site.closed"))).toEqual([
      ["RUN_CLOSED", "The run was closed by site.closed: it can no longer start."],
    ]);
  });
});

describe("task that has started", () => {
  test("is being stopped and reruns", async () => {
    expect(
      await ask("serve", { state: "running", tryNumber: 1 }, (each) => {
        each.setStopping("serve", "ada");
        each.addStart("serve");
      }),
    ).toEqual([
      ["RUNNING", "It is running."],
      ["STOPPING", "It is being stopped by ada."],
      ["START_PENDING", "Another start was requested once: it reruns after this time."],
    ]);
    const queued = await ask("serve", { state: "queued", tryNumber: 1 }, (each) =>
      each.setStopping("serve", "ada"),
    );
    expect(queued.map(([code]) => code)).toEqual(["EXECUTOR", "STOPPING"]);
  });

  test("has ended, and names what makes it rerun", async () => {
    expect(await ask("serve", { state: "success" }, (_, tell) => tell("mode", "closed"))).toEqual([
      ["FINISHED", "It has ended: success."],
      ["SIGNAL", 'It reruns on a signal: mode = "open"; mode = "open" (current value: "closed") is missing.'],
    ]);
    expect(await ask("train", { state: "skipped" }, (each) => each.addStart("train"))).toEqual([
      ["FINISHED", "It has ended: skipped."],
      ["START_PENDING", "Another start was requested once: it is about to rerun."],
    ]);
    expect(
      (await ask("serve", { state: "success" }, (each) => each.close("ada"))).map(([code]) => code),
    ).toEqual(["FINISHED"]);
  });
});
