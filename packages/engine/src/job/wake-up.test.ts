import { beforeEach, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { Database } from "../store/database/database.ts";
import { type Topic, WakeUps } from "./wake-up.ts";

/** Longer than any test. */
const NEVER_MS = 3_600_000;

let test: TestDatabase;
let database: Database;
/** As received by another process. */
let heard: (Topic | "")[];
let transactions: number;
let onHeard: () => void;

beforeEach(async () => {
  test = await testDatabase();
  database = Database.connect(test.url);
  transactions = 0;
  const rows = database.rows.bind(database);
  database.rows = (statement, values) => {
    if (statement.name === "wake-up-send") transactions++;
    return rows(statement, values);
  };
  heard = [];
  onHeard = () => {};
  const others = new WakeUps(database);
  await others.listen((topic) => {
    heard.push(topic);
    onHeard();
  });
  return async () => {
    await database.close();
    await test.close();
  };
});

async function hears(count: number): Promise<void> {
  await new Promise<void>((resolve) => {
    onHeard = () => {
      if (heard.length >= count) resolve();
    };
    onHeard();
  });
}

it("does not delay a topic because of another that is sent all the time", async () => {
  const wakeUps = new WakeUps(database, { intervalMs: NEVER_MS });
  wakeUps.send("pools");
  await hears(1);
  wakeUps.send("pools");
  wakeUps.send("signals");
  await hears(2);
  wakeUps.send("pools");
  wakeUps.send("fired");
  await hears(3);
  expect(heard).toEqual(["pools", "signals", "fired"]);
  await wakeUps.close();
});

it("sends a repeated topic once more after the interval", async () => {
  const wakeUps = new WakeUps(database, { intervalMs: 500 });
  for (let n = 0; n < 100; n++) wakeUps.send("signals");
  await hears(1);
  for (let n = 0; n < 100; n++) wakeUps.send("signals");
  await hears(2);
  wakeUps.send("fired");
  await hears(3);
  expect(heard).toEqual(["signals", "signals", "fired"]);
  await wakeUps.close();
});

it("sends topics of one turn in one transaction", async () => {
  const wakeUps = new WakeUps(database, { intervalMs: NEVER_MS });
  for (let id = 1; id <= 500; id++) wakeUps.send(`run:${id}`);
  await hears(500);
  expect(transactions).toBe(1);
  expect(new Set(heard).size).toBe(500);
  await wakeUps.close();
});

it("sends pending topics when it is closed, and nothing after that", async () => {
  const wakeUps = new WakeUps(database, { intervalMs: NEVER_MS });
  wakeUps.send("signals");
  await hears(1);
  wakeUps.send("signals");
  wakeUps.send("pools");
  await wakeUps.close();
  wakeUps.send("runs");
  const later = new WakeUps(database);
  later.send("fired");
  await hears(4);
  expect(heard).toEqual(["signals", "signals", "pools", "fired"]);
  await later.close();
});
