import { expect, it } from "vitest";
import { EventGate } from "./event-gate.ts";

const never = new AbortController().signal;

/** The current holders, in the order in which they entered. */
function watched(gate: EventGate) {
  const inside: string[] = [];
  const leave = new Map<string, () => void>();
  const come = (name: string, bytes: number, signal = never) =>
    gate.enter(bytes, signal).then((left) => {
      inside.push(name);
      leave.set(name, left);
    });
  return { inside, come, leave: (name: string) => leave.get(name)!() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

it("admits events while there is room, and queues the others in order", async () => {
  const { come, inside, leave } = watched(new EventGate(10));
  for (const [name, bytes] of [
    ["a", 6],
    ["b", 4],
    ["c", 8],
    ["d", 1],
  ] as const)
    void come(name, bytes);
  await settled();
  expect(inside).toEqual(["a", "b"]);
  // There is room for d, but others are before it in the queue.
  leave("b");
  await settled();
  expect(inside).toEqual(["a", "b"]);
  leave("a");
  await settled();
  expect(inside).toEqual(["a", "b", "c", "d"]);
  // Leaving twice counts once.
  leave("a");
  void come("e", 2);
  await settled();
  expect(inside).toHaveLength(4);
});

it("admits an oversized event alone, and removes a trigger that is stopped while it waits", async () => {
  const { come, inside, leave } = watched(new EventGate(10));
  const stop = new AbortController();
  void come("huge", 50);
  void come("stopped", 50, stop.signal);
  void come("small", 1);
  await settled();
  expect(inside).toEqual(["huge"]);
  stop.abort();
  await settled();
  leave("stopped");
  leave("huge");
  await settled();
  expect(inside).toEqual(["huge", "stopped", "small"]);
  void come("next", 9);
  await settled();
  expect(inside).toContain("next");
});
