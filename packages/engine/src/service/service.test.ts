import { beforeEach, describe, expect, it } from "vitest";
import { type Service, startAll, stopAll } from "./service.ts";

let events: string[];
beforeEach(() => {
  events = [];
});

describe("startAll and stopAll", () => {
  it("start in order and stop in reverse", async () => {
    const services = [service("a"), service("b"), service("c")];
    await startAll(services);
    await stopAll(services);
    expect(events).toEqual(["start a", "start b", "start c", "stop c", "stop b", "stop a"]);
  });

  it("unwind a failed start, the failed one included, and throw its error", async () => {
    const services = [service("a"), service("b", { start: "no port" }), service("c")];
    await expect(startAll(services)).rejects.toThrow("no port");
    expect(events).toEqual(["start a", "start b", "stop b", "stop a"]);
  });

  it("throw the start's error even when the unwinding fails too", async () => {
    await expect(
      startAll([service("a", { stop: "stuck" }), service("b", { start: "no port" })]),
    ).rejects.toThrow("no port");
  });

  it("stop all even when some fail, and tell of every failure", async () => {
    const services = [service("a", { stop: "one" }), service("b"), service("c", { stop: "two" })];
    await expect(stopAll(services)).rejects.toThrow("two; one");
    expect(events).toEqual(["stop c", "stop b", "stop a"]);
  });
});

function service(name: string, failures: { start?: string; stop?: string } = {}): Service {
  const step = async (what: "start" | "stop") => {
    events.push(`${what} ${name}`);
    if (failures[what] !== undefined) throw new Error(failures[what]);
  };
  return { name, start: () => step("start"), stop: () => step("stop") };
}
