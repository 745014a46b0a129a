import { Command } from "@commander-js/extra-typings";
import { EXIT } from "../exit-code.ts";
import { parseDuration } from "../input/values.ts";
import type { Column } from "../output/table.ts";
import { moment } from "../output/when.ts";
import type { Session } from "../session.ts";

export function command(session: Session) {
  const db = new Command("db").description(
    "migrate, inspect and clean the database (DATABASE_URL, or the embedded one of the home)",
  );

  db.command("migrate")
    .description("bring the database's schema up to this version")
    .action(async () => {
      await withDatabase(session, async ({ engine, database }) => {
        const applied = await engine.migrate(database, {
          onProgress: (each) => session.note(`Applied ${title(each)}.`),
        });
        const names = applied.map(title);
        await session.printDone(
          { applied: names },
          names.length === 0 ? "The database was up to date." : "The database is up to date.",
        );
      });
    });

  db.command("status")
    .description("say which migrations were applied and which are missing; exit 1 when some are")
    .action(async () => {
      await withDatabase(session, async ({ engine, database }) => {
        const { applied, pending } = await engine.migrationStatus(database);
        const items: Row[] = [
          ...applied.map((each) => ({ migration: title(each), applied_at: each.appliedAt.toISOString() })),
          ...pending.map((each) => ({ migration: title(each), applied_at: null })),
        ];
        await session.printList({ items, total: items.length }, COLUMNS, "There are no migrations.");
        if (pending.length === 0) return;
        session.note("Run `tradewind db migrate` to apply the missing ones.");
        session.exitCode = EXIT.failed;
      });
    });

  db.command("clean")
    .description(
      "delete ended runs with their tasks and outputs, old signals, stopped jobs, unused DAG versions and bundles",
    )
    .requiredOption("--older-than <duration>", "what ended before that, e.g. 30d", parseDuration)
    .option(
      "--stale-listeners <duration>",
      "signals are not kept for listeners that nobody has run for so long; 7d when not given",
      parseDuration,
    )
    .option("--dry-run", "only count")
    .action(async ({ olderThan, dryRun, staleListeners }) => {
      await withDatabase(session, async ({ engine, database }) => {
        const tellStale = ({ name, seenAt }: { name: string; seenAt: Date }) =>
          session.note(
            `No signals are kept for the listener ${name}: it was last run ${moment(seenAt.toISOString())}.`,
          );
        const clean = (dry: boolean) =>
          engine.cleanHistory(database, {
            olderThanMs: olderThan,
            dryRun: dry,
            batch: 1_000,
            ...(staleListeners === undefined ? {} : { staleListenerMs: staleListeners }),
            ...(dry ? { onStaleListener: tellStale } : {}),
            onProgress: (deleted: Readonly<Record<string, number>>) =>
              session.terminal.status(`deleted: ${summary(deleted)}`),
          });
        const found = await clean(true);
        if (dryRun || Object.values(found).every((count) => count === 0)) {
          return session.printDone(found, `Would delete: ${summary(found)}.`);
        }
        await session.confirm(`Delete ${summary(found)}?`);
        const deleted = await clean(false);
        await session.printDone(deleted, `Deleted: ${summary(deleted)}.`);
      });
    });

  return db;
}

interface Row {
  readonly migration: string;
  readonly applied_at: string | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "MIGRATION", value: (row) => row.migration },
  { title: "APPLIED", value: (row) => (row.applied_at === null ? "missing" : moment(row.applied_at)) },
];

function title({ version, name }: { version: number; name: string }): string {
  return `${String(version).padStart(4, "0")}_${name}`;
}

type Engine = typeof import("@tradewind/engine");
type Opened = Awaited<ReturnType<Engine["openDatabase"]>>;

async function withDatabase(
  session: Session,
  work: (open: { engine: Engine; database: Opened["database"] }) => Promise<void>,
): Promise<void> {
  const engine = await import("@tradewind/engine");
  const config = engine.resolveConfig({ home: session.options.home }, session.host.env);
  session.terminal.status("Opening the database…");
  const { database, stop } = await engine.openDatabase(config);
  try {
    await work({ engine, database });
  } finally {
    await stop();
  }
}

function summary(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  return parts.length === 0
    ? "nothing"
    : parts.map(([name, count]) => `${count} ${name.replaceAll("_", " ")}`).join(", ");
}
