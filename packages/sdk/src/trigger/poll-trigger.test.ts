import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RecordingTriggerHost, start } from "../../test/trigger-call.ts";
import { type Duration, type Ending, endWith, PollTrigger, type TriggerContext } from "../index.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A trigger that answers each poll with the next of these; an error is thrown. */
function polling(answers: (number | Error | Ending | undefined)[], statics: object = {}) {
  const at: number[] = [];
  class Polling extends PollTrigger<{ interval?: Duration } | null, number> {
    static id = "test.polling";
    override async poll(_ctx: TriggerContext) {
      at.push(Date.now());
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    }
  }
  return { kind: Object.assign(Polling, statics), pauses: () => at.slice(1).map((time, i) => time - at[i]!) };
}

async function next(
  kind: unknown,
  args: { interval?: Duration } | null = null,
  host = new RecordingTriggerHost(),
) {
  const running = await start(kind, args, host);
  const found = running.next();
  found.catch(() => {});
  await vi.runAllTimersAsync();
  return found;
}

test("polls at once, then every ten seconds with 10 % jitter, until there is an event", async () => {
  const { kind, pauses } = polling([undefined, undefined, undefined, 7]);
  const host = new RecordingTriggerHost();
  expect(await next(kind, null, host)).toEqual({ kind: "event", payload: 7, key: null });
  expect(host.polls).toBe(4);
  expect(pauses()).toHaveLength(3);
  for (const pause of pauses()) {
    expect(pause).toBeGreaterThanOrEqual(8_999);
    expect(pause).toBeLessThanOrEqual(11_001);
  }
  expect(new Set(pauses()).size).toBeGreaterThan(1);
});

test("takes the interval from the arguments, or from the class", async () => {
  const own = polling([undefined, 1], { interval: "1h" });
  await next(own.kind, { interval: "2s" });
  expect(own.pauses()[0]).toBeLessThan(2_300);
  const shared = polling([undefined, 1], { interval: "1h" });
  await next(shared.kind);
  expect(shared.pauses()[0]).toBeGreaterThan(3_000_000);
});

test("doubles the pause after errors and resets it after a success", async () => {
  const { kind, pauses } = polling([new Error("a"), new Error("b"), undefined, new Error("c"), 1], {
    interval: 1_000,
  });
  const host = new RecordingTriggerHost();
  expect(await next(kind, null, host)).toMatchObject({ payload: 1 });
  expect(pauses().map((pause) => Math.round(pause / 1_000))).toEqual([2, 4, 1, 2]);
  expect(host.lines.map((line) => line.message)).toEqual([
    "poll failed, error 1 of 5: a",
    "poll failed, error 2 of 5: b",
    "poll failed, error 1 of 5: c",
  ]);
});

test("fails after more errors in a row than allowed", async () => {
  const { kind, pauses } = polling([new Error("a"), new Error("b"), new Error("c"), 1], { retries: 2 });
  await expect(next(kind)).rejects.toMatchObject({
    code: "TW_POLL_FAILED",
    message: "poll failed 3 times in a row, the last time with: c",
    cause: new Error("c"),
  });
  expect(pauses()).toHaveLength(2);
});

test("passes an ending through", async () => {
  expect(await next(polling([endWith.skip("gone")]).kind)).toEqual({
    kind: "ending",
    ending: { kind: "skipped", reason: "gone" },
  });
});

test("continues an interval after an event", async () => {
  const { kind, pauses } = polling([1, 2]);
  const running = await start(kind, null, new RecordingTriggerHost());
  expect(await running.next()).toMatchObject({ payload: 1 });
  const second = running.next();
  await vi.runAllTimersAsync();
  expect(await second).toMatchObject({ payload: 2 });
  expect(pauses()[0]).toBeGreaterThan(8_999);
});

test("ends its sleep at once on abort, and ignores the error of an aborted poll", async () => {
  const host = new RecordingTriggerHost();
  const running = await start(polling([]).kind, null, host);
  const asleep = running.next();
  await vi.advanceTimersByTimeAsync(1);
  host.controller.abort();
  expect(await asleep).toEqual({ kind: "done" });
  expect(vi.getTimerCount()).toBe(0);

  class Fetching extends PollTrigger<void, number> {
    static id = "test.fetching";
    override poll({ abort }: TriggerContext) {
      return new Promise<number>((_, reject) => abort.addEventListener("abort", () => reject(abort.reason)));
    }
  }
  const other = new RecordingTriggerHost();
  const fetching = (await start(Fetching, null, other)).next();
  other.controller.abort();
  expect(await fetching).toEqual({ kind: "done" });
  expect(other.lines).toEqual([]);
});

test("limits concurrent polls of one host", async () => {
  class OfHost extends PollTrigger<{ url: string }, number> {
    static id = "test.of_host";
    static hostLimit = 3;
    override host({ url }: { url: string }) {
      return new URL(url).host;
    }
    override poll() {
      return 1;
    }
  }
  const host = new RecordingTriggerHost();
  await (await start(OfHost, { url: "http://a.example/x" }, host)).next();
  expect(host.limits).toEqual([{ key: "a.example", limit: 3 }]);
});

test.each([{ retries: -1 }, { hostLimit: 0 }])("rejects %o", async (statics) => {
  await expect(next(polling([1], statics).kind)).rejects.toMatchObject({ code: "TW_BAD_TRIGGER" });
});
