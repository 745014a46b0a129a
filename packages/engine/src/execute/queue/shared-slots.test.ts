import { expect, it } from "vitest";
import { SharedSlots } from "./shared-slots.ts";

/** A worker with this many slots, and queues that receive. */
function worker(slots: number, queues: number) {
  let free = slots;
  const limits = Array.from({ length: queues }, () => slots);
  const shared = new SharedSlots({
    queues,
    room: () => free,
    onLimit: (queue, limit) => {
      limits[queue] = limit;
    },
  });
  const started: number[] = [];
  return {
    limits,
    started,
    receive: (queue: number) =>
      shared.acquire(queue).then(() => {
        free--;
        started.push(queue);
        shared.limit();
      }),
    end: (queue: number) => {
      free++;
      shared.release(queue);
    },
    /** Without a free slot. */
    release: (queue: number) => shared.release(queue),
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

it("lets a busy queue take all slots, and leaves each idle queue one message", async () => {
  const { limits, receive } = worker(3, 2);
  await receive(0);
  expect(limits).toEqual([3, 2]);
  await receive(0);
  await receive(0);
  expect(limits).toEqual([3, 1]);
});

it("holds a message that arrives although the last slot is taken, until one is free", async () => {
  const { end, limits, receive, started } = worker(1, 2);
  await receive(0);
  void receive(1);
  await turn();
  expect(started).toEqual([0]);
  end(0);
  await turn();
  expect(started).toEqual([0, 1]);
  expect(limits).toEqual([1, 1]);
});

it("starts waiting messages in the order of their arrival", async () => {
  const { end, receive, started } = worker(1, 3);
  await receive(2);
  for (const queue of [1, 0]) void receive(queue);
  for (const queue of [2, 1]) {
    end(queue);
    await turn();
  }
  expect(started).toEqual([2, 1, 0]);
});

it("starts a waiting message without room when no message would do so by its end", async () => {
  const { receive, started, release } = worker(1, 2);
  await receive(0);
  void receive(1);
  // It has ended, and its slot is still taken, e.g. because its bundle is being fetched.
  release(0);
  await turn();
  expect(started).toEqual([0, 1]);
});

it("starts a message that finds no room if it is the only one", async () => {
  const { receive, started } = worker(0, 1);
  void receive(0);
  await turn();
  expect(started).toEqual([0]);
});
