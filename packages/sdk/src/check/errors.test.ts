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
])("shows %j as %s", (value, text) => {
  expect(show(value)).toBe(text);
});

test("names the task in an error about its trigger, and keeps code and cause", () => {
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
])("reports %s of a sensor with the name of the task", (_, sensor) => {
  const defined = dag("x", (d) => void d.operator("wait", sensor() as HttpSensor));
  expect(() => defined[PROGRAM].describe()).toThrow(/^dag "x", task "wait": \w+Trigger: /);
});

test("reports a value that is not a trigger with the name of the task", () => {
  expect(() => dag("x", (d) => void d.trigger("t", {} as never))).toThrow(
    'dag "x", task "t": an empty object is not a trigger; give an instance of a Trigger class',
  );
});
