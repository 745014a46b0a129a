/** State changes are published to other processes only while there is a subscriber. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { type Topic, WakeUps } from "./wake-up.ts";

const ASK_MS = 100;
/** After this time without a request, nothing is published. */
const FORGOTTEN_MS = 4 * ASK_MS;

let test: TestDatabase;
let opened: WakeUps[];

beforeEach(async () => {
  test = await testDatabase();
  opened = [];
  return async () => {
    for (const each of opened) await each.close();
    await test.close();
  };
});

function open(): WakeUps {
  const wakeUps = new WakeUps(test.db, { intervalMs: 1, askMs: ASK_MS });
  opened.push(wakeUps);
  return wakeUps;
}

async function hearing(wakeUps: WakeUps): Promise<(Topic | "")[]> {
  const heard: (Topic | "")[] = [];
  await wakeUps.listen((topic) => heard.push(topic));
  return heard;
}

const PATIENCE = { timeout: 20_000 };

it("are sent only while another process has requested them", async () => {
  const [scheduler, listener] = [open(), open()];
  const atScheduler = await hearing(scheduler);
  const atListener = await hearing(listener);
  const tellBoth = async (): Promise<(Topic | "")[]> => {
    atListener.splice(0);
    for (const topic of ["states", "moves"] as const) scheduler.send(topic);
    await sleep(10);
    // A later wake-up proves that no earlier one is still on its way.
    scheduler.send("fired");
    await expect.poll(() => atListener, PATIENCE).toContain("fired");
    return [...atListener];
  };
  await sleep(FORGOTTEN_MS);
  expect(await tellBoth()).toEqual(["fired"]);

  const [one, other] = [{}, {}];
  listener.wantStates(one, true);
  listener.wantStates(other, true);
  await expect.poll(tellBoth, PATIENCE).toEqual(["states", "moves", "fired"]);
  listener.wantStates(one, false);
  await sleep(FORGOTTEN_MS);
  await expect.poll(tellBoth, PATIENCE).toEqual(["states", "moves", "fired"]);

  listener.wantStates(other, false);
  listener.send("pools");
  await expect.poll(() => atScheduler, PATIENCE).toContain("pools");
  await sleep(FORGOTTEN_MS);
  expect(await tellBoth()).toEqual(["fired"]);
  // The requests themselves are not delivered.
  expect(new Set(atScheduler)).toEqual(new Set(["pools"]));
});

it("are sent by a process that does not listen, and delivered in its own process in any case", async () => {
  const [api, listener] = [open(), open()];
  const atListener = await hearing(listener);
  await sleep(FORGOTTEN_MS);
  api.send("states");
  await expect.poll(() => atListener, PATIENCE).toEqual(["states"]);
  const here: Topic[] = [];
  listener.onLocal((topic) => here.push(topic));
  listener.send("states");
  expect(here).toEqual(["states"]);
});

it("are sent by a process that has just begun to listen: requests are periodic", async () => {
  const [scheduler, listener] = [new WakeUps(test.db, { intervalMs: 1 }), open()];
  opened.push(scheduler);
  const atListener = await hearing(listener);
  await hearing(scheduler);
  scheduler.send("states");
  await expect.poll(() => atListener, PATIENCE).toEqual(["states"]);
});

it("are sent once when the first request arrives: earlier changes were not sent", async () => {
  const [scheduler, listener] = [open(), open()];
  const atListener = await hearing(listener);
  await hearing(scheduler);
  await sleep(FORGOTTEN_MS);
  scheduler.send("states");
  listener.wantStates({}, true);
  await expect.poll(() => atListener, PATIENCE).toEqual(["states"]);
});
