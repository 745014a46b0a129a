/**
 * Two schedulers, two triggerers and at times a third, tasks with every kind of wait, and every kind of fault of processes,
 * the database and the connections to it, all at once and seeded. Then the faults stop, and every wait must have reached the
 * one end that its script allows: no event lost, no task resumed twice or too early. TRADEWIND_FAULT_SEED repeats a run's
 * programs and faults, TRADEWIND_FAULT_SCALE makes it longer.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { pgProxy } from "../support/pg-proxy.ts";
import { crashablePostgres } from "../support/private-postgres.ts";
import { type LogLine, type Place, readLog } from "./component-process.ts";
import { DeferralDeck } from "./deferral-deck.ts";
import { FaultInstallation } from "./installation.ts";
import { judgeMail } from "./mail-verdict.ts";
import { stuckReport } from "./stuck-report.ts";
import { auditProblems, goneTriggers, startAudit } from "./wait-audit.ts";
import { triggerLines } from "./wait-ledger.ts";
import { judgeWaits } from "./wait-verdict.ts";
import type { WaitingDag } from "./waiting-dag.ts";
import { Gates, Mailbox, WaitingLoad } from "./waiting-load.ts";
import { busyDag, KEPT_POOLS, mailDags, WAITING_POOLS, waitingDags } from "./waiting-programs.ts";
import { PoolWatch, TakeoverWatch, TRIGGERS } from "./watches.ts";

const SEED = Number(process.env.TRADEWIND_FAULT_SEED ?? Math.floor(Math.random() * 10_000));
const SCALE = Number(process.env.TRADEWIND_FAULT_SCALE ?? 1);
const WAITS = 2_000 * SCALE;
const FAULTS = 100 * SCALE;
const CONVERGENCE_MS = 60_000;
const TAKEOVER_MS = 15_000;
/** The process that reports the event may fail, and the one that takes over as well, repeatedly. */
const TOLD_MS = 4 * TAKEOVER_MS;

test("waiting tasks resume exactly once despite kills, stops and network faults", {
  timeout: 240_000 * Math.max(1, SCALE),
}, async () => {
  console.log(`fault test of waits: TRADEWIND_FAULT_SEED=${SEED} TRADEWIND_FAULT_SCALE=${SCALE}`);
  const postgres = await crashablePostgres();
  const proxies = await Promise.all([pgProxy(postgres.url), pgProxy(postgres.url)]);
  const installation = await FaultInstallation.open(postgres.url);
  const gates = new Gates(installation.root);
  const letters = new Mailbox(installation.root, "letters");
  const notices = new Mailbox(installation.root, "notices");
  const folders = { letters: letters.folder, notices: notices.folder };
  const waiting = waitingDags(SEED, 6, gates.folder);
  const dags = [...waiting, busyDag(gates.folder), ...mailDags(gates.folder, folders)];
  await installation.addPools(WAITING_POOLS);
  await installation.addPools(KEPT_POOLS, true);
  await startAudit(installation);
  await publish(installation, dags);
  const schedulers = [
    installation.place("first"),
    installation.place("second", { databaseUrl: proxies[0]?.url ?? "" }),
  ];
  const triggerers = [
    installation.triggererPlace("alpha"),
    // A triggerer with a short lease, without wake-ups, and with a faulty connection to the database.
    installation.triggererPlace("beta", {
      databaseUrl: proxies[1]?.url ?? "",
      notifies: false,
      lease: [3_000, 700, 700],
    }),
    installation.triggererPlace("gamma"),
  ] as const;
  const places: Place[] = [...schedulers, ...triggerers];
  const pools = new PoolWatch(installation);
  const runs = new TakeoverWatch(installation);
  const triggers = new TakeoverWatch(installation, TRIGGERS);
  const deck = new DeferralDeck(
    { installation, postgres, proxies, runs, triggers, gates, schedulers, triggerers },
    SEED,
  );

  await deck.startAll();
  const dagIds = waiting.map((dag) => dag.id);
  const load = new WaitingLoad({ installation, gates, mailboxes: [letters, notices], dagIds }, SEED);
  await deck.deal(SCALE, load, FAULTS);
  await installation.until("enough waits", async () => (await waitsBegun(installation)) >= WAITS, 120_000);
  await load.stop();
  await converge("all runs end", installation, places, () => unended(installation, letters));
  // It sweeps such triggers once a minute; processes with wake-ups do it at once.
  await deck.retire();
  await converge("triggers without waits are deleted", installation, places, () => idle(installation));
  await Promise.all([pools.stop(), runs.stop(), triggers.stop()]);

  const verdict = await judgeWaits(installation, dags, gates.opened);
  const { problems, ...counts } = verdict;
  const logs = places.flatMap(readLog);
  const said = (start: string) => logs.filter((line) => line.message.startsWith(start)).length;
  const unknown = logs.filter((line) => line.error?.includes("CommitUnknownError")).length;
  const unheard = await refusedYields(installation);
  const longest = Math.round(triggers.longest());
  const taken = Map.groupBy(triggers.taken, ({ how }) => how);
  console.log(
    JSON.stringify({
      faults: deck.total,
      ...deck.counts,
      seizedTriggers: deck.seizedTriggers,
      ...counts,
      letters: letters.posted.length,
      revivals: said("lease lost"),
      refused: said("batch rejected"),
      unknown,
      unheard,
      takeovers: Object.fromEntries(
        [...taken].map(([how, all]) => [how, [all.length, Math.round(Math.max(...all.map(({ ms }) => ms)))]]),
      ),
      runTakeovers: [runs.taken.length, Math.round(runs.longest())],
      looks: pools.checks,
      full: pools.full,
    }),
  );

  expect([
    ...problems,
    ...(await auditProblems(installation)),
    ...(await judgeMail(installation, "letters", letters.posted)),
    ...(await judgeMail(installation, "notices", notices.posted)),
  ]).toEqual([]);
  expect(installation.crashes()).toEqual([]);
  expect(pools.violations).toEqual([]);
  expect(await installation.sql("SELECT name, occupied FROM pool WHERE occupied <> 0")).toEqual([]);
  expect(triggers.waiting()).toEqual([]);
  expect(longest).toBeLessThan(TAKEOVER_MS);
  expect(verdict.notifiedAfterMs[1]).toBeLessThan(TOLD_MS);
  expect(logs.filter(isAlarming)).toEqual([]);
  expect(await postgres.complaints()).toEqual([]);

  // Guards against vacuous success: the faults must have hit.
  expect(verdict.waits).toBeGreaterThanOrEqual(WAITS);
  expect(deck.total).toBeGreaterThanOrEqual(FAULTS);
  for (const [fault, count] of Object.entries(deck.counts)) expect(count, fault).toBeGreaterThanOrEqual(1);
  expect(said("lease lost")).toBeGreaterThanOrEqual(deck.counts.triggerersPaused);
  expect(verdict.lostBehindWaits).toBeGreaterThanOrEqual(1);
  expect(verdict.races.event).toBeGreaterThanOrEqual(5);
  expect(verdict.races.timeout).toBeGreaterThanOrEqual(5);
  expect(verdict.quarantined).toBeGreaterThanOrEqual(1);
  expect(unknown).toBeGreaterThanOrEqual(1);
  expect(unheard).toBeGreaterThanOrEqual(1);
  expect(triggers.taken.length).toBeGreaterThanOrEqual(5);
  expect(pools.checks).toBeGreaterThan(100);
  expect(pools.full).toBeGreaterThan(10);
});

/** Two DAGs per file: equal triggers of different bundles are different triggers. */
async function publish(installation: FaultInstallation, dags: readonly WaitingDag[]): Promise<void> {
  const module = JSON.stringify(join(import.meta.dirname, "waiting-dag.ts"));
  const files: Record<string, string> = {};
  for (let at = 0; at < dags.length; at += 2) {
    const exports = dags.slice(at, at + 2).map((script, n) => {
      return `export const dag_${n} = waitingDag(${JSON.stringify(script)});`;
    });
    files[`dags_${at}.ts`] = [`import { waitingDag } from ${module};`, ...exports].join("\n");
  }
  await installation.publishFiles(files);
}

async function waitsBegun(installation: FaultInstallation): Promise<number> {
  const [row] = await installation.sql<{ n: number }>("SELECT count(*) AS n FROM deferral");
  return row?.n ?? 0;
}

async function converge(
  what: string,
  installation: FaultInstallation,
  places: readonly Place[],
  left: () => Promise<object[]>,
): Promise<void> {
  const deadline = performance.now() + CONVERGENCE_MS;
  for (let found = await left(); found.length > 0; found = await left()) {
    if (performance.now() > deadline) {
      const some = JSON.stringify(found.slice(0, 10));
      throw new Error(`timed out waiting until ${what}: ${some}\n${await stuckReport(installation, places)}`);
    }
    await sleep(100);
  }
}

/** Active runs, and letters without a run yet. */
async function unended(installation: FaultInstallation, { posted }: Mailbox): Promise<object[]> {
  const open = await installation.sql<object>(
    "SELECT id, dag_id, run_id FROM dag_run WHERE state IN ('queued', 'running')",
  );
  const unread = await installation.sql<object>(
    `SELECT l.letter, d.dag_id FROM unnest($1::text[]) AS l(letter) CROSS JOIN unnest(ARRAY['letters', 'notices']) AS d(dag_id)
     WHERE NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.dag_id = d.dag_id AND r.conf->'event'->>'letter' = l.letter)`,
    [posted],
  );
  return [...open, ...unread];
}

async function idle(installation: FaultInstallation): Promise<object[]> {
  return installation.sql<object>(
    `SELECT t.id, t.kind, t.args, t.owner_job FROM trigger t WHERE t.dag_id IS NULL
     UNION ALL SELECT NULL, d.kind, d.kwargs, NULL FROM deferral d WHERE d.ended_at IS NULL`,
  );
}

/** How often a triggerer that no longer owned the trigger saw its gate open. */
async function refusedYields(installation: FaultInstallation): Promise<number> {
  const tellers = await installation.sql<{ trigger_id: number; kind: string; gate: string }>(
    `SELECT DISTINCT d.trigger_id, d.kind, d.outcome->'payload'->>'gate' AS gate FROM deferral d
     WHERE d.kind IN ('fault.gate', 'fault.twin_gate', 'fault.cold_gate') AND d.outcome->>'kind' = 'event'`,
  );
  const gone = await goneTriggers(installation);
  const owners = new Map<string, number[]>();
  for (const { trigger_id: id, kind, gate } of tellers) {
    const name = `${kind} ${gate}`;
    owners.set(name, [...(owners.get(name) ?? []), ...(gone.get(id)?.pids ?? [])]);
  }
  return triggerLines(installation.ledger.path).filter(
    ({ kind, name, did, by }) => did === "yielded" && owners.get(`${kind} ${name}`)?.includes(by) === false,
  ).length;
}

/** A runner that does not respond is an expected error: it was stopped. */
const EXPECTED = /^the triggers make no progress/;

/** An unreachable database is a warning. Any error, and any output of Node itself, is a defect. */
function isAlarming({ level, message }: LogLine): boolean {
  return (level === "error" || level === "crash") && !EXPECTED.test(message);
}
