/** Killed listeners, broken connections, lost answers. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it } from "vitest";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { WakeUps } from "../job/wake-up.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { comparePositions } from "../store/signal/signals-position.ts";
import { PostgresSignals } from "./postgres-signals.ts";
import { readPosition } from "./signal.ts";
import type { SignalWatcher } from "./signal-service.ts";

const PROGRAM = fileURLToPath(new URL("../../test/support/listener-program.ts", import.meta.url));

let test: TestDatabase;
let service: PostgresSignals;
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  test = await testDatabase();
  await test.db.rows(adhoc("CREATE TABLE effect (id bigint GENERATED ALWAYS AS IDENTITY, note text)"));
  service = open(test.url);
  return async () => {
    for (const close of closing.splice(0).reverse()) await close();
    await test.close();
  };
});

function open(url: string): PostgresSignals {
  const database = Database.connect(url);
  const wakeUps = new WakeUps(database);
  const made = new PostgresSignals({ database, wakeUps });
  closing.push(async () => {
    await made.close();
    await wakeUps.close();
    await database.close();
  });
  return made;
}

interface Child {
  readonly child: ChildProcess;
  /** Resolves at the next line with this text. */
  said(text: string): Promise<void>;
  kill(): Promise<void>;
}

function start(name: string, hang = false): Child {
  const child = spawn(
    process.execPath,
    ["--conditions=source", PROGRAM, test.url, name, hang ? "hang" : "no"],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const waiting = new Set<{ text: string; resolve: () => void }>();
  createInterface(child.stdout!).on("line", (line) => {
    for (const each of waiting) {
      if (each.text !== line) continue;
      waiting.delete(each);
      each.resolve();
    }
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  closing.push(kill);
  return {
    child,
    kill,
    said: (text) => new Promise((resolve) => waiting.add({ text, resolve })),
  };
}

async function effects(): Promise<string[]> {
  const rows = await test.db.rows<{ note: string }>(adhoc("SELECT note FROM effect ORDER BY id"));
  return rows.map(({ note }) => note);
}

async function until(count: number): Promise<string[]> {
  for (;;) {
    const found = await effects();
    if (found.length >= count) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe("a listener's process", () => {
  it("killed before the commit has no effect; the listener that takes over processes the signal once", async () => {
    const first = start("l", true);
    const begun = first.said("begun");
    await first.said("listening");
    await service.send([
      { key: "a", value: 1 },
      { key: "a", value: 2 },
    ]);
    await begun;
    expect(await effects()).toEqual([]);
    await first.kill();
    start("l");
    const done = await until(2);
    expect(done).toEqual(["l a 1", "l a 2"]);
  });

  it("killed at random, repeatedly: every effect is stored once, in the order of its key", async () => {
    const total = 3_000;
    const names = ["l1", "l2"];
    let isOver = false;
    let kills = 0;
    const lives = names.map(async (name, at) => {
      while (!isOver) {
        const life = start(name);
        await life.said("begun");
        // Some die in the middle of a batch, some a few batches later.
        await new Promise((resolve) => setTimeout(resolve, (kills * 37 + at * 11) % 150));
        if (isOver) break;
        await life.kill();
        kills++;
        if (kills > 12) {
          start(name);
          break;
        }
      }
    });
    const writers = Array.from({ length: 10 }, async (_, writer) => {
      for (let n = 0; n < total / 10; n++) await service.send([{ key: `k${writer}`, value: n }]);
    });
    await Promise.all(writers);
    const found = await until(total * names.length);
    isOver = true;
    await Promise.race([Promise.all(lives), new Promise((resolve) => setTimeout(resolve, 300))]);
    expect(kills).toBeGreaterThan(2);
    expect(found).toHaveLength(total * names.length);
    const byKey = Map.groupBy(found, (note) => note.split(" ").slice(0, 2).join(" "));
    expect(byKey.size).toBe(names.length * 10);
    for (const notes of byKey.values())
      expect(notes.map((note) => Number(note.split(" ")[2]))).toEqual([...Array(total / 10).keys()]);
  }, 120_000);
});

describe("a connection that breaks", () => {
  it("after the commit and before its answer: nothing is sent or processed twice", async () => {
    const proxy = await pgProxy(test.url);
    closing.push(() => proxy.close());
    const shaky = open(proxy.url);
    await shaky.listen("l", { key: "*" }, noting(), { leaseMs: 800 });
    proxy.set({ kind: "drop-commit-answer", probability: 0.1 });
    for (let n = 0; n < 200; n++) await shaky.send([{ key: `k${n % 4}`, value: n }]);
    const done = await until(200);
    proxy.set({ kind: "pass" });
    expect(proxy.faults.dropped).toBeGreaterThan(5);
    expect(done.map(Number).toSorted((a, b) => a - b)).toEqual([...Array(200).keys()]);
    expect((await service.list({ limit: 1_000 })).signals).toHaveLength(200);
  });

  it("after the commit of a retried signal: it is not processed again", async () => {
    const proxy = await pgProxy(test.url);
    closing.push(() => proxy.close());
    let isIll = true;
    let isToBreak = false;
    const watcher: SignalWatcher = {
      process: async (signals, tx) => {
        if (isIll) throw new Error("not yet");
        await noting().process(signals, tx);
        isToBreak = signals.at(-1)?.value === 2;
      },
    };
    const listening = await open(proxy.url).listen("l", { key: "*" }, watcher, {
      backoffMs: 50,
      leaseMs: 800,
    });
    await service.send([{ key: "k", value: 1 }]);
    const [second] = await service.send([{ key: "k", value: 2 }]);
    // The first is retried, and the second waits behind it: the position moves past both.
    const isPassed = () =>
      comparePositions(readPosition(listening.position!), readPosition(second!.position)) >= 0;
    while (!isPassed()) await new Promise((resolve) => setTimeout(resolve, 5));
    proxy.set({ kind: "drop-commit-answer", random: () => (isToBreak ? 0 : 1) });
    isIll = false;
    await until(2);
    proxy.set({ kind: "pass" });
    await service.send([{ key: "k", value: 3 }]);
    await until(3);
    expect(proxy.faults.dropped).toBeGreaterThan(0);
    expect(await effects()).toEqual(["1", "2", "3"]);
  });

  it("of the LISTEN connection: signals of other processes still arrive", async () => {
    const proxy = await pgProxy(test.url);
    closing.push(() => proxy.close());
    const cut = open(proxy.url);
    await cut.listen("l", { key: "k" }, noting(), { leaseMs: 800 });
    for (let n = 0; n < 5; n++) {
      proxy.set({ kind: "cut" });
      await service.send([{ key: "k", value: n }]);
      proxy.set({ kind: "pass" });
      await until(n + 1);
    }
    expect((await effects()).map(Number)).toEqual([0, 1, 2, 3, 4]);
  });
});

function noting(): SignalWatcher {
  return {
    process: async (signals, tx) => {
      await tx!.rows(adhoc("INSERT INTO effect (note) SELECT unnest($1::text[])"), [
        signals.map(({ value }) => String(value)),
      ]);
    },
  };
}
