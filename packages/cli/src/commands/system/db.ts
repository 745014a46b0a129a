import { Command } from "@commander-js/extra-typings";
import { CliError, usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { parseDuration, wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { moment } from "../../output/when.ts";
import type { Session } from "../../session.ts";

export function command(session: Session) {
  const db = new Command("db")
    .description("migrate, inspect and clean the database (DATABASE_URL, or the embedded one of the home)")
    .addHelpText("after", examples("tradewind db status", "tradewind db clean --older-than 90d --dry-run"));

  db.command("migrate")
    .description("bring the database's schema up to this version")
    .addHelpText("after", examples("tradewind db migrate"))
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
    .addHelpText("after", examples("tradewind db status"))
    .action(async () => {
      requireDatabase(session);
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
      "delete what ended long ago, while everything runs: runs with their tasks, outputs and logs, signals, and more",
    )
    .addHelpText(
      "after",
      examples(
        "tradewind db clean --older-than 90d --dry-run",
        "tradewind db clean --older-than 30d --only runs logs",
      ),
    )
    .requiredOption("--older-than <duration>", "what ended before that, e.g. 30d", parseDuration)
    .option("--only <what...>", "only these: runs, signals, logs … (--dry-run names them all)")
    .option(
      "--stale-listeners <duration>",
      "signals are not kept for listeners that nobody has run for so long; 7d when not given",
      parseDuration,
    )
    .option("--batch <rows>", "how many rows a transaction deletes at most", wholeNumber(1), 1_000)
    .option("--dry-run", "only count")
    .action(async ({ olderThan, dryRun, only, staleListeners, batch }) => {
      requireDatabase(session);
      await withDatabase(session, async ({ engine, config, database }) => {
        const tellStale = ({ name, seenAt }: { name: string; seenAt: Date }) =>
          session.note(
            `No signals are kept for the listener ${name}: it was last run ${moment(seenAt.toISOString())}.`,
          );
        const options = {
          olderThanMs: olderThan,
          batch,
          only: parseKinds(only, engine.CLEANABLE),
          ...(staleListeners === undefined ? {} : { staleListenerMs: staleListeners }),
        };
        session.terminal.status("Counting…");
        const found = await engine.clean(
          { config, database },
          { ...options, dryRun: true, onStaleListener: tellStale },
        );
        if (dryRun || Object.values(found).every((count) => count === 0)) {
          return session.printDone(found, `${dryRun ? "Would delete" : "Deleted"}: ${summary(found)}.`);
        }
        await session.confirm(`Delete ${summary(found)}?`);
        await session.interruptible(async (signal) => {
          const deleted = await engine.clean(
            { config, database },
            {
              ...options,
              dryRun: false,
              signal,
              onProgress: (now) => session.terminal.status(`deleted: ${progress(now, found)}`),
            },
          );
          if (!signal.aborted) return session.printDone(deleted, `Deleted: ${summary(deleted)}.`);
          session.exitCode = EXIT.interrupted;
          await session.printDone(
            deleted,
            `Interrupted. Deleted so far: ${summary(deleted)}. The same command goes on with the rest.`,
          );
        });
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
type Cleanable = Engine["CLEANABLE"][number];

function parseKinds(
  given: readonly string[] | undefined,
  known: Engine["CLEANABLE"],
): readonly Cleanable[] | undefined {
  const unknown = given?.find((name) => !known.some((each) => each === name));
  if (unknown !== undefined)
    throw usageError(`there is nothing called ${unknown} to clean.`, `one of ${known.join(", ")}`);
  return given && known.filter((each) => given.includes(each));
}

function requireDatabase(session: Session): void {
  if (session.hasDatabase) return;
  throw new CliError("TW_CLI_NO_DATABASE", `there is no database in ${session.home}.`, {
    exit: EXIT.notFound,
    remedy: "name the home with --home, or set DATABASE_URL; tradewind db migrate makes a database",
  });
}

async function withDatabase(
  session: Session,
  work: (open: {
    engine: Engine;
    config: ReturnType<Engine["resolveConfig"]>;
    database: Opened["database"];
  }) => Promise<void>,
): Promise<void> {
  const engine = await import("@tradewind/engine");
  const config = engine.resolveConfig({ home: session.options.home }, session.host.env);
  session.terminal.status("Opening the database…");
  const { database, stop } = await engine.openDatabase(config);
  try {
    await work({ engine, config, database });
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

/** Of what was found: more may have become old meanwhile. */
function progress(
  deleted: Readonly<Record<string, number>>,
  found: Readonly<Record<string, number>>,
): string {
  return Object.entries(deleted)
    .filter(([name, count]) => count > 0 || (found[name] ?? 0) > 0)
    .map(([name, count]) => `${count} of ${Math.max(count, found[name] ?? 0)} ${name.replaceAll("_", " ")}`)
    .join(", ");
}
