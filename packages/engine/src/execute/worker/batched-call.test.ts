import { describe, expect, it } from "vitest";
import { BatchedCall } from "./batched-call.ts";
import { ExecutionError } from "./execution-client.ts";

/** Longer than any test: a request that waits for it fails the test. */
const NEVER_MS = 600_000;

/** Items are texts; the result of each is its length. */
function underTest(
  options: { readonly gapMs?: number; readonly rejects?: string; readonly onSend?: () => void } = {},
) {
  const sent: (readonly string[])[] = [];
  const { onSend, rejects, ...how } = options;
  const call = new BatchedCall<string, number>({
    ...how,
    lengthOf: (item) => item.length,
    isWanted: () => true,
    onRetry: () => {},
    send: async (items) => {
      sent.push(items);
      onSend?.();
      if (rejects !== undefined && items.includes(rejects)) throw new ExecutionError(422, "VALIDATION", "no");
      return items.map((item) => item.length);
    },
  });
  return { call, sent };
}

describe("a batched call", () => {
  it("sends at once when it is idle, and collects while a request is under way", async () => {
    const during: Promise<number>[] = [];
    const onSend = () => void (sent.length === 1 && during.push(call.add("c"), call.add("d")));
    const { call, sent } = underTest({ onSend });
    expect(await Promise.all([call.add("a"), call.add("bb")])).toEqual([1, 2]);
    expect(await Promise.all(during)).toEqual([1, 1]);
    expect(sent).toEqual([
      ["a", "bb"],
      ["c", "d"],
    ]);
  });

  it("keeps the gap between two requests, and ends it for a caller that hurries", async () => {
    const { call, sent } = underTest({ gapMs: NEVER_MS });
    await call.add("a");
    const waiting = [call.add("b"), call.add("c")];
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sent).toEqual([["a"]]);
    await call.hurried(Promise.all(waiting).then(() => {}));
    expect(sent).toEqual([["a"], ["b", "c"]]);
  });

  it("does not keep the gap when much waits", async () => {
    const { call, sent } = underTest({ gapMs: NEVER_MS });
    await call.add("a");
    const large = "x".repeat(70_000);
    expect(await Promise.all([call.add("b"), call.add(large)])).toEqual([1, 70_000]);
    expect(sent).toHaveLength(2);
  });

  it("sends no more characters together than a request may have, unless one item has more", async () => {
    const { call, sent } = underTest();
    const [half, huge] = ["x".repeat(9_000_000), "x".repeat(20_000_000)];
    await Promise.all([call.add(half), call.add(half), call.add(huge), call.add("a"), call.add("b")]);
    expect(sent.map((items) => items.map(({ length }) => length))).toEqual([
      [9_000_000],
      [9_000_000],
      [20_000_000],
      [1, 1],
    ]);
  });

  it("rejects only the item that the server rejects", async () => {
    const { call } = underTest({ rejects: "bad" });
    const results = await Promise.allSettled(["a", "b", "bad", "c"].map((item) => call.add(item)));
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
  });
});
