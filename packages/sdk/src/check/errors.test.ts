import { expect, test } from "vitest";
import { dag } from "../author/dag.ts";
import { PROGRAM } from "../runtime/program.ts";
import { FileSensor, HttpSensor } from "../trigger/builtin-sensors.ts";
import { DagDefinitionError, naming, show, TriggerError } from "./errors.ts";

class Order {}

test.each<[unknown, string]>([
  [{ a: 1 }, "an object"],
  [{}, "an empty object"],
  [Object.create(null), "an empty object"],
  [new Order(), "an Order"],
  [new Map(), "a Map"],
  [new Error("x"), "an Error"],
  [[], "an array"],
  [() => 1, "a function"],
  ["text", '"text"'],
  [7, "7"],
  [null, "null"],
])("%j is shown as %s", (value, text) => {
  expect(show(value)).toBe(text);
});

test("what is wrong with a task's trigger names the task, and keeps its code and cause", () => {
  const refused = new TriggerError("TW_TRIGGER_ARGS", "bad");
  const thrower = (error: Error) => () => {
    throw error;
  };
  expect(() => naming("task a", thrower(refused))).toThrow(
    expect.objectContaining({ code: "TW_TRIGGER_ARGS", message: "task a: bad", cause: refused }),
  );
  const bad = new DagDefinitionError("TW_BAD_DURATION", "no time");
  expect(() => naming("task a", thrower(bad))).toThrow(
    expect.objectContaining({ name: "DagDefinitionError", message: "task a: no time" }),
  );
  const own = new Error("the author's");
  expect(() => naming("task a", thrower(own))).toThrow(own);
  expect(naming("task a", () => 1)).toBe(1);
});

test.each([
  ["an unknown option", () => new HttpSensor({ url: "https://x.example", verb: "GET" } as never)],
  ["a wrong value", () => new FileSensor({ path: 7 } as never)],
])("%s of a sensor is told with the task's name", (_, sensor) => {
  const defined = dag("x", (d) => void d.add("wait", sensor() as HttpSensor));
  expect(() => defined[PROGRAM].describe()).toThrow(/^dag "x", task "wait": \w+Trigger: /);
});

test("so is what is no trigger at all", () => {
  expect(() => dag("x", (d) => void d.trigger("t", {} as never))).toThrow(
    'dag "x", task "t": an empty object is not a trigger; give an instance of a Trigger class',
  );
});
