/**
 * The tables of the signal storm, and an audit inside the database: PostgreSQL triggers record what cannot be seen
 * afterwards. Retention deletes signals, so each is recorded when it is stored; and when one is deleted, every listener that
 * wants it must have processed it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc } from "../../src/store/database/database.ts";
import { deleteSignals } from "../../src/store/signal/signals-retention.ts";
import type { FaultInstallation } from "./installation.ts";
import type { SendLedger } from "./send-ledger.ts";
import { LISTENERS } from "./storm-listeners.ts";
import { Watch } from "./watches.ts";

/** Whether listener `l` wants signal `s`. */
export const WANTS = `(s.id > coalesce(l.after_version, 0) AND CASE l.name ${Object.entries(LISTENERS)
  .map(([name, { wants }]) => `WHEN '${name}' THEN ${wants}`)
  .join(" ")} END)`;

const MAKE = [
  "CREATE TABLE diary (note text)",
  "CREATE TABLE work (id text PRIMARY KEY)",
  // No order and no constraint against a second effect: the verdict searches for those.
  `CREATE TABLE effect (n bigint GENERATED ALWAYS AS IDENTITY, listener text, signal_id bigint, namespace text, key text,
                        by integer)`,
  "CREATE INDEX effect_of ON effect (listener, signal_id)",
  "CREATE UNIQUE INDEX effect_remote ON effect (signal_id) WHERE listener = 'remote'",
  `CREATE TABLE audit_stored (id bigint, tx xid8, namespace text, key text, sender text, client text, client_seq bigint,
                              told text, ill text, never boolean)`,
  "CREATE TABLE audit_deleted (id bigint)",
  "CREATE TABLE audit_premature (id bigint, listener text)",
  `CREATE FUNCTION audit_signals_stored() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
     INSERT INTO audit_stored
     SELECT id, tx, namespace, key, sender, client, client_seq, value->>'id', value->>'ill', (value->>'never')::boolean
     FROM fresh;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER audit_stored AFTER INSERT ON signal REFERENCING NEW TABLE AS fresh
   FOR EACH STATEMENT EXECUTE FUNCTION audit_signals_stored()`,
  // Always by index (OFFSET 0: not as a join). A plan made with few effects would read all of them for each signal, and its
  // transaction would hold back all listeners.
  `CREATE FUNCTION audit_signals_deleted() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN
     INSERT INTO audit_deleted SELECT id FROM gone;
     INSERT INTO audit_premature
     SELECT s.id, l.name FROM gone s CROSS JOIN signal_listener l
     WHERE ${WANTS}
       AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.listener = l.name AND e.signal_id = s.id OFFSET 0)
       AND NOT EXISTS (
         SELECT 1 FROM signal_dead_letter d WHERE d.listener = l.name AND d.signal_id = s.id OFFSET 0);
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER audit_deleted AFTER DELETE ON signal REFERENCING OLD TABLE AS gone
   FOR EACH STATEMENT EXECUTE FUNCTION audit_signals_deleted()`,
];

export async function startSignalAudit(installation: FaultInstallation): Promise<void> {
  for (const sql of MAKE) await installation.sql(sql);
}

/** Longer than the statements of a killed writer can continue in the server. */
const AFTERMATH_MS = 6_000;

/** Retention while signals flow, as strict as possible: every signal that certainly is not sent again may be deleted. */
export class RetentionSweep extends Watch {
  readonly #ledger: SendLedger;

  constructor(installation: FaultInstallation, ledger: SendLedger) {
    super(installation);
    this.#ledger = ledger;
  }

  protected override async check(): Promise<void> {
    await this.installation.db.transaction(async (tx) => {
      // The time of the whole transaction: the deleted signals are at least this old, however long the deletion takes.
      const now = await tx.one<{ now: Date }>(adhoc("SELECT now()"));
      const keptSince = this.#ledger.openSince(Date.now()) - AFTERMATH_MS;
      const olderThanMs = now!.now.getTime() - keptSince;
      await deleteSignals(tx, { olderThanMs, staleMs: STALE_MS, batch: 10_000 });
    });
    await sleep(1_500);
  }
}

const STALE_MS = 3_600_000;
