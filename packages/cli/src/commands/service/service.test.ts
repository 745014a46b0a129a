import { afterEach, expect, it, vi } from "vitest";
import type { Session } from "../../session.ts";
import { type Running, serve } from "./service.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** A session that receives its signals from the test. */
function stage() {
  const said: string[] = [];
  const exits: number[] = [];
  let listener: (signal: NodeJS.Signals) => void = () => {};
  const note = (text: string) => said.push(text);
  const env: NodeJS.ProcessEnv = { PATH: "/bin", DATABASE_URL: "secret", TRADEWIND_SECRET_KEY: "secret" };
  const session = {
    note,
    terminal: { note },
    host: {
      env,
      onSignal: (_: unknown, heard: typeof listener) => {
        listener = heard;
        return () => {};
      },
      exit: (code: number) => exits.push(code),
    },
  } as unknown as Session;
  return { session, said, exits, env, send: (signal: NodeJS.Signals) => listener(signal) };
}

it("aborts a start that reacts to the signal, without an error", async () => {
  const { session, said, exits, send } = stage();
  const served = serve(
    session,
    (signal) =>
      new Promise<Running>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    () => expect.unreachable(),
  );
  send("SIGINT");
  await served;
  expect({ said, exits }).toEqual({ said: [expect.stringContaining("SIGINT"), "Stopped."], exits: [] });
});

it("removes secrets from the environment once it has started", async () => {
  const { session, env, send } = stage();
  let before: NodeJS.ProcessEnv = {};
  const start = async () => {
    before = { ...env };
    return { stop: async () => {} };
  };
  await serve(session, start, () => send("SIGTERM"));
  expect(before).toHaveProperty("DATABASE_URL");
  expect(env).toEqual({ PATH: "/bin" });
});

it("stops a service whose start ignored the signal", async () => {
  const { session, send } = stage();
  const { promise, resolve } = Promise.withResolvers<Running>();
  const served = serve(
    session,
    () => promise,
    () => expect.unreachable(),
  );
  send("SIGTERM");
  const stop = vi.fn(async () => {});
  resolve({ stop });
  await served;
  expect(stop).toHaveBeenCalledOnce();
});

it("exits after one signal if the start hangs", async () => {
  vi.useFakeTimers();
  const { session, exits, send } = stage();
  void serve(
    session,
    () => new Promise<Running>(() => {}),
    () => {},
  );
  send("SIGTERM");
  vi.advanceTimersByTime(14_000);
  expect(exits).toEqual([]);
  vi.advanceTimersByTime(2_000);
  expect(exits).toEqual([143]);
});

it("merges simultaneous signals into one and counts a later signal as the second", () => {
  vi.useFakeTimers();
  const { session, said, exits, send } = stage();
  void serve(
    session,
    () => new Promise<Running>(() => {}),
    () => {},
  );
  send("SIGINT");
  send("SIGINT");
  vi.advanceTimersByTime(100);
  send("SIGINT");
  expect({ said, exits }).toEqual({ said: [expect.stringContaining("SIGINT")], exits: [] });
  vi.advanceTimersByTime(1_000);
  send("SIGINT");
  expect(exits).toEqual([130]);
});

it("ends the drain on the second signal and the process on the third", async () => {
  vi.useFakeTimers();
  const { session, said, exits, send } = stage();
  let drains = 1;
  const running = { stop: () => new Promise<void>(() => {}), endDrain: () => drains-- > 0 };
  void serve(
    session,
    async () => running,
    () => send("SIGTERM"),
  );
  await vi.advanceTimersByTimeAsync(1_000);
  send("SIGTERM");
  expect({ said: said.at(-1), exits }).toEqual({
    said: expect.stringContaining("Stopping running tasks"),
    exits: [],
  });
  vi.advanceTimersByTime(1_000);
  send("SIGTERM");
  expect(exits).toEqual([143]);
});

it("rethrows an error of the start", async () => {
  const { session } = stage();
  const failing = serve(
    session,
    () => Promise.reject(new Error("no database")),
    () => {},
  );
  await expect(failing).rejects.toThrow("no database");
});
