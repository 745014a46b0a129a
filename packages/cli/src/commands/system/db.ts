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
    .description("migrate, inspect and clean the database (DATABASE_URL, or the home's embedded one)")
    .addHelpText("after", examples("tradewind db status", "tradewind db clean --older-than 90d --dry-run"));

  db.command("migrate")
    .description("migrate the database schema to this version")
    .addHelpText("after", examples("tradewind db migrate"))
    .action(async () => {
      await withDatabase(session, async ({ engine, database }) => {
        const applied = await engine.migrate(database, {
          onProgress: (each) => session.note(`Applied ${title(each)}.`),
        });
        const names = applied.map(title);
        await session.printDone(
          { applied: names },
          names.length === 0 ? "The database was already up to date." : "The database is up to date.",
        );
      });
    });

  db.command("status")
    .description("list applied and missing migrations; exit 1 if any are missing")
    .addHelpText("after", examples("tradewind db status"))
    .action(async () => {
      requireDatabase(session);
      await withDatabase(session, async ({ engine, database }) => {
        const { applied, pending } = await engine.migrationStatus(database);
        const items: Row[] = [
          ...applied.map((each) => ({ migration: title(each), applied_at: each.appliedAt.toISOString() })),
          ...pending.map((each) => ({ migration: title(each), applied_at: null })),
        ];
        await session.printList({ items, total: items.length }, COLUMNS, "No migrations.");
        if (pending.length === 0) return;
        session.note("Run `tradewind db migrate` to apply the missing ones.");
        session.exitCode = EXIT.failed;
      });
    });

  db.command("clean")
    .description(
      "delete old data: runs with their tasks, outputs and logs, signals and more; safe while services run",
    )
    .addHelpText(
      "after",
      examples(
        "tradewind db clean --older-than 90d --dry-run",
        "tradewind db clean --older-than 30d --only runs logs",
      ),
    )
    .requiredOption("--older-than <duration>", "minimum age, e.g. 30d", parseDuration)
    .option("--only <what...>", "only these: runs, signals, logs … (--dry-run lists all)")
    .option(
      "--stale-listeners <duration>",
      "delete pending signals of listeners inactive for this long (default: 7d)",
      parseDuration,
    )
    .option("--batch <rows>", "maximum number of rows deleted per transaction", wholeNumber(1), 1_000)
    .option("--dry-run", "only count")
    .action(async ({ olderThan, dryRun, only, staleListeners, batch }) => {
      requireDatabase(session);
      await withDatabase(session, async ({ engine, config, database }) => {
        const tellStale = ({ name, seenAt }: { name: string; seenAt: Date }) =>
          session.note(
            `Signals are not kept for listener ${name}: last active ${moment(seenAt.toISOString())}.`,
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
            `Interrupted. Deleted so far: ${summary(deleted)}. Run the command again to continue.`,
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
  if (unknown !== undefined) throw usageError(`unknown kind "${unknown}".`, `use one of ${known.join(", ")}`);
  return given && known.filter((each) => given.includes(each));
}

function requireDatabase(session: Session): void {
  if (session.hasDatabase) return;
  throw new CliError("TW_CLI_NO_DATABASE", `no database in ${session.home}.`, {
    exit: EXIT.notFound,
    remedy: "set --home or DATABASE_URL, or create a database with `tradewind db migrate`",
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

/** Relative to the counts at the start: more rows may have reached the age since. */
function progress(
  deleted: Readonly<Record<string, number>>,
  found: Readonly<Record<string, number>>,
): string {
  return Object.entries(deleted)
    .filter(([name, count]) => count > 0 || (found[name] ?? 0) > 0)
    .map(([name, count]) => `${count} of ${Math.max(count, found[name] ?? 0)} ${name.replaceAll("_", " ")}`)
    .join(", ");
}
