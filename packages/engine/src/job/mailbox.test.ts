import { expect, test } from "vitest";
import { Mailbox } from "./mailbox.ts";

test("what can wait is kept back from a reader who comes early, and wakes it when its time is up", async () => {
  const mailbox = new Mailbox<string>(30);
  mailbox.postPatiently("started a", "a");
  mailbox.post("ended b", "b");
  await mailbox.wait();
  expect(mailbox.take()).toEqual(["ended b"]);
  expect(mailbox.size).toBe(1);
  await mailbox.wait();
  expect(mailbox.take()).toEqual(["started a"]);
  expect(mailbox.size).toBe(0);
});

test("what was kept back goes before the next about the same, and is told once", async () => {
  const mailbox = new Mailbox<string>(60_000);
  mailbox.postPatiently("started a", "a");
  mailbox.postPatiently("started b", "b");
  mailbox.post("ended a", "a");
  await mailbox.wait();
  expect(mailbox.take()).toEqual(["started a", "ended a"]);
  mailbox.post("ended b", "b");
  expect(mailbox.take()).toEqual(["started b", "ended b"]);
  expect(mailbox.size).toBe(0);
});

test("a call that comes while the reader is at work, before it takes what is there, ends its next wait", async () => {
  const mailbox = new Mailbox<string>(60_000);
  mailbox.wake();
  await mailbox.wait();
  mailbox.wake();
  expect(mailbox.take()).toEqual([]);
  const outcome = await Promise.race([
    mailbox.wait().then(() => "woken"),
    Promise.resolve().then(async () => {
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      return "waits";
    }),
  ]);
  expect(outcome).toBe("woken");
});
