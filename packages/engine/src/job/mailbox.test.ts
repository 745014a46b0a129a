import { expect, test } from "vitest";
import { Mailbox } from "./mailbox.ts";

test("a deferred item is withheld from an early reader, and wakes it when its delay has passed", async () => {
  const mailbox = new Mailbox<string>(30);
  mailbox.postPatiently("started a", "a");
  mailbox.post("ended b", "b");
  await mailbox.wait();
  expect(mailbox.drain()).toEqual(["ended b"]);
  expect(mailbox.size).toBe(1);
  await mailbox.wait();
  expect(mailbox.drain()).toEqual(["started a"]);
  expect(mailbox.size).toBe(0);
});

test("a deferred item comes before the next item with the same key, and only once", async () => {
  const mailbox = new Mailbox<string>(60_000);
  mailbox.postPatiently("started a", "a");
  mailbox.postPatiently("started b", "b");
  mailbox.post("ended a", "a");
  await mailbox.wait();
  expect(mailbox.drain()).toEqual(["started a", "ended a"]);
  mailbox.post("ended b", "b");
  expect(mailbox.drain()).toEqual(["started b", "ended b"]);
  expect(mailbox.size).toBe(0);
});

test("a wake-up while the reader is busy, before it takes the items, ends its next wait", async () => {
  const mailbox = new Mailbox<string>(60_000);
  mailbox.wake();
  await mailbox.wait();
  mailbox.wake();
  expect(mailbox.drain()).toEqual([]);
  const outcome = await Promise.race([
    mailbox.wait().then(() => "woken"),
    Promise.resolve().then(async () => {
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      return "waits";
    }),
  ]);
  expect(outcome).toBe("woken");
});
