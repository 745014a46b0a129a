import { beforeEach, describe, expect, it } from "vitest";
import { EngineError } from "./errors.ts";
import { type Logger, silentLogger } from "./logger.ts";
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

  it("unwind a failed start, the failed service included, and throw its error", async () => {
    const services = [service("a"), service("b", { start: "no port" }), service("c")];
    await expect(startAll(services)).rejects.toThrow("no port");
    expect(events).toEqual(["start a", "start b", "stop b", "stop a"]);
  });

  it("throw the start's error even if the unwinding fails too", async () => {
    await expect(
      startAll([service("a", { stop: "stuck" }), service("b", { start: "no port" })]),
    ).rejects.toThrow("no port");
  });

  it("log the stack of a failed start only if its error has no code", async () => {
    const logged: string[] = [];
    const logger: Logger = { ...silentLogger, error: (message) => logged.push(message) };
    const coded = { ...service("a"), start: () => Promise.reject(new EngineError("API_ADDRESS", "taken")) };
    await expect(startAll([coded], logger)).rejects.toThrow("taken");
    expect(logged).toEqual([]);
    await expect(startAll([service("b", { start: "bug" })], logger)).rejects.toThrow("bug");
    expect(logged).toEqual(["service failed to start"]);
  });

  it("stop all services even if some fail, and report every failure", async () => {
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
