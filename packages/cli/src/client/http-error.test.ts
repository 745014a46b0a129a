import { describe, expect, it } from "vitest";
import { HttpError, networkError, placeOf } from "./http-error.ts";

describe("HttpError", () => {
  it.each([
    [400, 2],
    [401, 4],
    [403, 4],
    [404, 3],
    [409, 5],
    [412, 5],
    [422, 2],
    [429, 6],
    [500, 6],
    [503, 6],
  ])("maps status %i to exit code %i", (status, exit) => {
    expect(new HttpError(status, "cannot do it", undefined).exit).toBe(exit);
  });

  it("says what failed and why", () => {
    const error = new HttpError(404, "cannot show the DAG x", {
      detail: 'DAG "x" does not exist',
      code: "NOT_FOUND",
    });
    expect(error).toMatchObject({
      message: 'cannot show the DAG x: DAG "x" does not exist',
      code: "NOT_FOUND",
    });
  });

  it("does not refer to the server log if the message names cause and remedy", () => {
    const remedy = (code: string) =>
      new HttpError(502, "x", { detail: "It is gone: clear it.", code }).remedy;
    expect(remedy("OUTPUT_MISSING")).toBeUndefined();
    expect(remedy("INTERNAL")).toContain("the server's log");
  });

  it("parses the object of the request from its path", () => {
    const none = { dagId: null, runId: null, taskId: null, isVersion: false };
    const dag = { ...none, collection: "dags", dagId: "a/b" };
    expect(placeOf("/dags/a%2Fb/dagRuns?limit=1")).toEqual(dag);
    expect(placeOf("/dags/a%2Fb/dagVersions/diff")).toEqual({ ...dag, isVersion: true });
    expect(placeOf("/dags/a%2Fb/tasks/t")).toEqual({ ...dag, taskId: "t" });
    expect(placeOf("/dags/a%2Fb/dagRuns/r/taskInstances/t/0/why")).toEqual({
      ...dag,
      runId: "r",
      taskId: "t",
    });
    expect(placeOf("/pools/a")).toEqual({ ...none, collection: "pools" });
    expect(placeOf("/backfills", { dag_id: "a" })).toEqual({ ...none, collection: "backfills", dagId: "a" });
  });

  it("names the field of a validation error", () => {
    const detail = [{ loc: ["body", "conf", "region"], msg: "must be a string", type: "x" }];
    expect(new HttpError(422, "cannot trigger x", { detail }).fields).toEqual([
      { field: "conf.region", message: "must be a string" },
    ]);
  });

  it("reads pointers, objects and texts that are not JSON", () => {
    const errors = [{ pointer: "/slots", message: "too small" }];
    expect(new HttpError(422, "x", { title: "Bad", errors }).fields).toEqual([
      { field: "slots", message: "too small" },
    ]);
    expect(new HttpError(409, "x", { detail: { reason: "taken" } }).message).toBe("x: taken");
    expect(new HttpError(502, "x", "Bad Gateway\nmore").message).toBe("x: Bad Gateway");
    expect(new HttpError(500, "x", null).message).toBe("x: the server answered 500.");
  });
});

it("names the process of a stopped standalone in a network error", () => {
  const refused = new TypeError("fetch failed", {
    cause: Object.assign(new Error(), { code: "ECONNREFUSED" }),
  });
  const target = { url: "http://127.0.0.1:1", token: undefined };
  // The highest pid possible: no process has it.
  expect(networkError("cannot x", { ...target, pid: 4_194_304 }, refused)).toMatchObject({
    exit: 6,
    message: "cannot x: http://127.0.0.1:1 does not answer (connection refused).",
    remedy: expect.stringContaining("has stopped"),
  });
  expect(networkError("cannot x", { ...target, pid: process.pid }, refused).remedy).toContain("doctor");
});
