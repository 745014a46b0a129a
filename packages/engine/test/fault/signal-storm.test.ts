/**
 * A hundred thousand signals of many writers, in late transactions, over gRPC, sent again after a lost response; listeners
 * that compete for their names; and every kind of fault of processes, the database and the connections to it, all at once
 * and seeded. Then the faults stop, and every signal must be stored once, and must have had its effect once for every
 * listener that wants it, in the order of its key. TRADEWIND_FAULT_SEED repeats a run's signals and faults,
 * TRADEWIND_FAULT_SCALE makes it longer.
 */
import { writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { ensureToken, openHome } from "../../src/service/home.ts";
import { retryDeadLetter } from "../../src/store/signal/signals-watch.ts";
import { type PgProxy, pgProxy } from "../support/pg-proxy.ts";
import { crashablePostgres } from "../support/private-postgres.ts";
import { type LogLine, logOf, type Place, readLog } from "./component-process.ts";
import { FaultInstallation } from "./installation.ts";
import { SendLedger } from "./send-ledger.ts";
import { RetentionSweep, startSignalAudit } from "./signal-audit.ts";
import { SignalDeck } from "./signal-deck.ts";
import { Plan, SIGNALS, type WriterHome } from "./signal-plan.ts";
import type { SignalPlace } from "./signal-process.ts";
import { behind, judgeSignals } from "./signal-verdict.ts";
import { cureFile, LISTENERS } from "./storm-listeners.ts";

const SEED = Number(process.env.TRADEWIND_FAULT_SEED ?? Math.floor(Math.random() * 10_000));
const SCALE = Number(process.env.TRADEWIND_FAULT_SCALE ?? 1);
const FAULTS = 50 * SCALE;
/** For a small machine with other tests in parallel; normally a tenth of that is enough. */
const PATIENCE_MS = 150_000;

test("every signal is stored once and has its effect once, in the order of its key, despite all faults", {
  timeout: 480_000 * Math.max(1, SCALE),
}, async () => {
  console.log(`fault test of signals: TRADEWIND_FAULT_SEED=${SEED} TRADEWIND_FAULT_SCALE=${SCALE}`);
  // Required to find late commits.
  const postgres = await crashablePostgres({ settings: { track_commit_timestamp: "on" } });
  const [listening, writing] = await Promise.all([pgProxy(postgres.url), pgProxy(postgres.url)]);
  const installation = await FaultInstallation.open(postgres.url);
  const folder = join(installation.root, "storm");
  await mkdir(folder);
  await startSignalAudit(installation);
  const places = await stormPlaces(installation, { listening, writing });
  const all = [...places.listeners, ...places.writers, ...places.peers, places.server];
  const deck = new SignalDeck(
    { installation, postgres, ways: { listening, writing }, folder, ...places },
    SEED,
  );
  const ledger = new SendLedger(join(folder, "sent"), new Plan(SEED, SCALE));

  const phase = phases();
  await deck.startAll();
  phase("started");
  const retention = new RetentionSweep(installation, ledger);
  await deck.deal(SCALE);
  phase("dealt");
  await until("all is sent", all, () => ledger.total() >= SIGNALS * SCALE);
  phase("sent");
  writeFileSync(join(folder, "over"), "");
  await until("writers have finished", all, () => ledger.isOver());
  await until("listeners have caught up", all, async () => (await behind(installation)).length === 0);
  phase("caughtUp");
  const retried = await retryDeadLetters(installation, folder);
  await deck.killHolder("ledger");
  await until("dead letters are dealt with", all, async () => (await behind(installation)).length === 0);
  await retention.stop();
  phase("retried");

  const { problems, ...counts } = await judgeSignals(installation, ledger);
  phase("judged");
  const logs = all.flatMap(readLog);
  const said = (start: RegExp) =>
    logs.filter(({ error = "", message }) => start.test(`${message}: ${error}`)).length;
  const told = {
    voided: said(/^restarting a signal listener: Another process holds/),
    unknown: said(/^restarting a signal listener: .*broke before the commit was confirmed/),
    refused: said(/^could not process a signal/),
    again: ledger.again(),
  };
  console.log(
    JSON.stringify({
      faults: deck.total,
      ...deck.counts,
      ...counts,
      retried,
      ...told,
      seconds: phase.seconds,
      // Also of a first try that is repeated.
      ...(problems.length > 0 && { problems }),
    }),
  );

  expect(problems).toEqual([]);
  expect(installation.crashes()).toEqual([]);
  expect(logs.filter(isAlarming)).toEqual([]);
  expect(await postgres.complaints()).toEqual([]);

  // Guards against vacuous success: the faults must have hit.
  expect(counts.stored).toBeGreaterThanOrEqual(SIGNALS * SCALE);
  expect(deck.total).toBeGreaterThanOrEqual(FAULTS);
  for (const [fault, count] of Object.entries(deck.counts)) expect(count, fault).toBeGreaterThanOrEqual(1);
  for (const name of Object.keys(LISTENERS)) expect(counts.effects[name], name).toBeGreaterThanOrEqual(100);
  expect(told.voided).toBeGreaterThanOrEqual(1);
  expect(told.unknown).toBeGreaterThanOrEqual(1);
  expect(told.refused).toBeGreaterThanOrEqual(10);
  expect(told.again).toBeGreaterThanOrEqual(1);
  expect(retried).toBeGreaterThanOrEqual(1);
  expect(counts.deadLetters).toBeGreaterThanOrEqual(1);
  expect(counts.wentOn).toBeGreaterThanOrEqual(1);
  expect(counts.deleted).toBeGreaterThanOrEqual(1_000);
  expect(counts.late).toBeGreaterThanOrEqual(100);
});

/** The duration of each part, for performance analysis. */
function phases() {
  const seconds: Record<string, number> = {};
  let since = performance.now();
  const end = (name: string) => {
    seconds[name] = Math.round((performance.now() - since) / 100) / 10;
    since = performance.now();
  };
  return Object.assign(end, { seconds });
}

/** The processes of the storm and their places. */
async function stormPlaces(
  installation: FaultInstallation,
  ways: { readonly listening: PgProxy; readonly writing: PgProxy },
): Promise<{ listeners: SignalPlace[]; writers: SignalPlace[]; peers: SignalPlace[]; server: SignalPlace }> {
  const port = await freePort();
  const place = (name: string, program: string, more: Partial<SignalPlace>): SignalPlace => ({
    home: join(installation.root, name),
    databaseUrl: installation.url,
    ledger: installation.ledger.path,
    program,
    ...more,
    environment: {
      FAULT_FOLDER: join(installation.root, "storm"),
      FAULT_SEED: String(SEED),
      FAULT_SCALE: String(SCALE),
      ...more.environment,
    },
  });
  const server = place("server", "signal-server-program.ts", {
    environment: { TRADEWIND_SIGNALS_PORT: String(port) },
  });
  const token = await ensureToken(await openHome(server.home));
  const names = Object.keys(LISTENERS).filter((name) => name !== "remote");
  const listener = (name: string, more: Partial<SignalPlace> = {}) =>
    place(name, "signal-listener-program.ts", {
      ...more,
      environment: { FAULT_LISTENERS: names.filter((each) => each !== "newcomer").join() },
      later: { FAULT_LISTENERS: names.join(), FAULT_NOTIFY: "off" },
    });
  const writer = (name: WriterHome, more: Partial<SignalPlace> = {}) =>
    place(name, "signal-writer-program.ts", {
      ...more,
      environment: { FAULT_WRITERS: name },
      later: { FAULT_NOTIFY: "off" },
    });
  const peer = (name: WriterHome) =>
    place(name, "signal-peer-program.ts", {
      environment: { FAULT_WRITERS: name, FAULT_URL: `grpc://127.0.0.1:${port}`, FAULT_TOKEN: token },
    });
  return {
    listeners: [listener("alpha"), listener("beta"), listener("gamma", { databaseUrl: ways.listening.url })],
    writers: [writer("till"), writer("kiosk", { databaseUrl: ways.writing.url })],
    peers: [peer("peer"), peer("stranger")],
    server,
  };
}

/** Below the ephemeral ports: it stays free while the server is down. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    await new Promise((resolve) => probe.close(resolve));
    if (isFree) return port;
  }
}

/** Poison can be processed from now on; every other dead letter is retried. Returns their number. */
async function retryDeadLetters(installation: FaultInstallation, folder: string): Promise<number> {
  writeFileSync(cureFile(folder), "");
  await installation.sql(
    `CREATE TABLE retried AS SELECT id, listener, signal_id FROM
     (SELECT *, row_number() OVER (ORDER BY id) AS place FROM signal_dead_letter) AS d WHERE place % 2 = 0`,
  );
  const letters = await installation.sql<{ id: number }>("SELECT id FROM retried");
  for (const { id } of letters) await installation.persist(() => retryDeadLetter(installation.db, id));
  return letters.length;
}

async function until(
  what: string,
  places: readonly Place[],
  holds: () => Promise<boolean> | boolean,
): Promise<void> {
  for (
    const deadline = performance.now() + PATIENCE_MS * Math.max(1, SCALE);
    !(await holds());
    await sleep(100)
  ) {
    if (performance.now() < deadline) continue;
    const tails = places.flatMap((place) => [
      `${logOf(place)}:`,
      ...readLog(place)
        .slice(-10)
        .map((line) => `  ${JSON.stringify(line).slice(0, 400)}`),
    ]);
    throw new Error(`timed out waiting until ${what}\n${tails.join("\n")}`);
  }
}

/** Poison signals become dead letters, with an expected error. */
const EXPECTED = /^a signal became a dead letter/;

/** An unreachable database is a warning. Any error, and any output of Node itself, is a defect. */
function isAlarming({ level, message }: LogLine): boolean {
  return (level === "error" || level === "crash") && !EXPECTED.test(message);
}
