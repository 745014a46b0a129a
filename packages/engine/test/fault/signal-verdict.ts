/** The invariants that must hold after the signal storm, when all listeners have caught up. */
import type { FaultInstallation } from "./installation.ts";
import type { SendLedger } from "./send-ledger.ts";
import { WANTS } from "./signal-audit.ts";
import { ATTEMPTS, LISTENERS } from "./storm-listeners.ts";

export interface SignalVerdict {
  readonly problems: string[];
  readonly stored: number;
  readonly effects: Readonly<Record<string, number>>;
  readonly deleted: number;
  readonly deadLetters: number;
  /** Signals that were committed after others with higher versions. */
  readonly late: number;
  /** Effects of signals behind a dead letter of their key. */
  readonly wentOn: number;
}

/** Each query returns violations. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  "rolled back but stored": "SELECT * FROM audit_stored WHERE never",
  "against the order of its key in the log": `
    SELECT * FROM (SELECT *, lag(tx) OVER (PARTITION BY namespace, key ORDER BY id) AS before FROM audit_stored) AS s
    WHERE tx < before`,
  "stored before an earlier signal of its client": `
    SELECT * FROM (SELECT *, lag(client_seq) OVER (PARTITION BY namespace, key, client ORDER BY id) AS before
                   FROM audit_stored WHERE client IS NOT NULL) AS s
    WHERE client_seq < before`,
  "deleted before a listener had processed it": "SELECT * FROM audit_premature",
  "wanted but without an effect": `
    SELECT l.name AS listener, s.* FROM signal_listener l JOIN audit_stored s ON ${WANTS}
    LEFT JOIN effect e ON e.listener = l.name AND e.signal_id = s.id
    WHERE e.n IS NULL
      AND NOT EXISTS (SELECT 1 FROM signal_dead_letter d WHERE d.listener = l.name AND d.signal_id = s.id)`,
  "done twice": `
    SELECT listener, signal_id, count(*), array_agg(n) AS n, array_agg(by) AS by FROM effect
    GROUP BY listener, signal_id HAVING count(*) > 1`,
  "an effect of an unwanted signal": `
    SELECT e.* FROM effect e LEFT JOIN (signal_listener l JOIN audit_stored s ON ${WANTS})
      ON l.name = e.listener AND s.id = e.signal_id
    WHERE s.id IS NULL`,
  "out of the order of its key": `
    SELECT * FROM (
      SELECT e.*, lag(signal_id) OVER (PARTITION BY listener, namespace, key ORDER BY n) AS before FROM effect e
      WHERE NOT EXISTS (SELECT 1 FROM retried r WHERE r.listener = e.listener AND r.signal_id = e.signal_id)) AS e
    WHERE signal_id < before`,
  "an unexpected dead letter": `
    SELECT d.* FROM signal_dead_letter d JOIN audit_stored s ON s.id = d.signal_id
    WHERE s.ill IS DISTINCT FROM 'poison' OR d.attempts <> ${ATTEMPTS}
      OR EXISTS (SELECT 1 FROM effect e WHERE e.listener = d.listener AND e.signal_id = d.signal_id)
      OR EXISTS (SELECT 1 FROM retried r WHERE r.listener = d.listener AND r.signal_id = d.signal_id)`,
  "poison but neither a dead letter nor retried": `
    SELECT l.name AS listener, s.* FROM signal_listener l JOIN audit_stored s ON s.ill = 'poison' AND ${WANTS}
    WHERE NOT EXISTS (SELECT 1 FROM signal_dead_letter d WHERE d.listener = l.name AND d.signal_id = s.id)
      AND NOT EXISTS (SELECT 1 FROM retried r WHERE r.listener = l.name AND r.signal_id = s.id)`,
  // Counted in the transaction of the effect. Over the network an effect may be repeated, and counts once.
  "miscounted by its listener": `
    SELECT l.name, l.processed, count(e.n) AS effects FROM signal_listener l LEFT JOIN effect e ON e.listener = l.name
    WHERE l.name <> 'remote' GROUP BY l.name HAVING l.processed <> count(e.n)`,
  "still waiting": "SELECT * FROM signal_retry",
  "stored after the position of a listener that wants it": `
    SELECT l.name, s.id FROM signal_listener l JOIN audit_stored s ON (s.tx, s.id) > (l.tx, l.signal_id) AND ${WANTS}`,
};

const SHOWN = 5;

/** Listeners of the signal storm that have not caught up yet. */
export async function behind(installation: FaultInstallation): Promise<object[]> {
  return installation.sql<object>(
    `SELECT l.name, l.tx, l.signal_id, l.holder, l.host, l.lease_until - now() AS lease,
            (SELECT count(*) FROM signal_retry r WHERE r.listener = l.name) AS parked
     FROM signal_listener l
     WHERE EXISTS (SELECT 1 FROM signal s WHERE (s.tx, s.id) > (l.tx, l.signal_id) AND ${WANTS})
        OR EXISTS (SELECT 1 FROM signal_retry r WHERE r.listener = l.name)
        OR EXISTS (SELECT 1 FROM signal_dead_letter d WHERE d.listener = l.name AND d.retry_at IS NOT NULL)`,
  );
}

export async function judgeSignals(
  installation: FaultInstallation,
  ledger: SendLedger,
): Promise<SignalVerdict> {
  for (const sql of PREPARE) await installation.sql(sql);
  const problems = await storedProblems(installation, ledger);
  for (const [what, sql] of Object.entries(FORBIDDEN)) {
    const found = await installation.sql<object>(sql);
    problems.push(
      ...some(
        what,
        found.map((row) => JSON.stringify(row)),
      ),
    );
  }
  const listeners = await installation.sql<{ name: string }>("SELECT name FROM signal_listener");
  const missing = Object.keys(LISTENERS).filter((name) => !listeners.some((each) => each.name === name));
  problems.push(...some("no process ever listened as", missing));
  const [counts] = await installation.sql<Omit<SignalVerdict, "problems">>(COUNTS);
  return { ...counts!, problems };
}

const PREPARE = ["CREATE INDEX ON audit_stored (id)", "ANALYZE"];

const COUNTS = `
  SELECT (SELECT count(*) FROM audit_stored) AS stored,
    (SELECT json_object_agg(listener, n) FROM (SELECT listener, count(*) AS n FROM effect GROUP BY listener) AS e) AS effects,
    (SELECT count(*) FROM audit_deleted) AS deleted,
    (SELECT count(*) FROM signal_dead_letter) AS "deadLetters",
    (SELECT count(*) FROM (SELECT at, min(at) OVER (ORDER BY id DESC ROWS UNBOUNDED PRECEDING) AS earliest
       FROM (SELECT id, pg_xact_commit_timestamp(xmin) AS at FROM audit_stored) AS c) AS s
     WHERE at > earliest) AS late,
    (SELECT count(*) FROM signal_dead_letter d WHERE EXISTS (
       SELECT 1 FROM effect e WHERE e.listener = d.listener AND e.namespace = d.namespace AND e.key = d.key
         AND e.signal_id > d.signal_id)) AS "wentOn"`;

/** Compares the stored with the sent signals: each once, and unchanged. */
async function storedProblems(installation: FaultInstallation, ledger: SendLedger): Promise<string[]> {
  const rows = await installation.sql<{ told: string; namespace: string; key: string; sender: string }>(
    "SELECT told, namespace, key, sender FROM audit_stored WHERE never IS NOT TRUE",
  );
  const times = new Map<string, number>();
  for (const { key, namespace, sender, told } of rows) {
    const name = `${told} ${namespace} ${key} ${sender}`;
    times.set(name, (times.get(name) ?? 0) + 1);
  }
  const lost: string[] = [];
  for (const { key, namespace, sender, value } of ledger.all()) {
    const name = `${value.id} ${namespace} ${key} ${sender}`;
    if (!times.has(name)) lost.push(name);
    else if (times.get(name) === 1) times.delete(name);
  }
  const [twice, unsent] = [
    [...times].filter(([, count]) => count > 1).map(([name]) => name),
    [...times].filter(([, count]) => count === 1).map(([name]) => name),
  ];
  return [
    ...some("sent but not stored", lost),
    ...some("stored twice", twice),
    ...some("stored but never sent like this", unsent),
  ];
}

function some(what: string, found: readonly string[]): string[] {
  return found.length === 0 ? [] : [`${found.length} ${what}: ${found.slice(0, SHOWN).join("; ")}`];
}
