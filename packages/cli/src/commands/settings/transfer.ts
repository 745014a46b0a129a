/** `import` and `export` of connections, variables and pools. */
import type { Command } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import type { Column } from "../../output/table.ts";
import type { Session } from "../../session.ts";
import { type Exported, exportSettings, writeExport } from "../../settings/export.ts";
import { type EntryChange, importSettings } from "../../settings/import.ts";
import type { SettingsKind } from "../../settings/kinds.ts";

export function addTransferCommands(group: Command, session: Session, kind: SettingsKind): void {
  const { collection } = kind;
  const file = `${collection}.json`;
  group
    .command("import")
    .description(
      `import ${collection} from a JSON file, also from \`airflow ${collection} export\`; all or nothing`,
    )
    .addHelpText(
      "after",
      examples(
        `tradewind ${collection} import ${file} --dry-run`,
        `tradewind ${collection} import ${file}`,
        `tradewind ${collection} import - < ${file}`,
      ),
    )
    .argument("<file>", "JSON file, or - for stdin")
    .option("--dry-run", "only show what would be created and changed")
    .action(async (from, { dryRun = false }) => {
      const changes = await importSettings(session, kind, { dryRun, file: from });
      const summary = summaryOf(kind, changes);
      if (session.format !== "table") return session.printDone(changes, "");
      if (!dryRun) return session.note(`Imported ${summary}.`);
      const items = changes.filter(({ change }) => change !== "unchanged");
      await session.printList({ items, total: items.length }, COLUMNS, "Nothing would change.");
      session.note(`Would import ${summary}.`);
    });

  const exporting = group
    .command("export")
    .description(`export all ${collection} as JSON`)
    .addHelpText(
      "after",
      examples(
        `tradewind ${collection} export ${file}`,
        ...(kind.hasSecrets ? [`tradewind ${collection} export ${file} --with-secrets`] : []),
        `tradewind ${collection} export | jq keys`,
      ),
    )
    .argument("[file]", "output file, readable by you only (default: stdout)");
  if (!kind.hasSecrets) {
    exporting.action(async (to) => write(session, kind, { to, withSecrets: false }));
    return;
  }
  exporting
    .option("--with-secrets", "include secrets, read from the database with the home's secret key")
    .action(async (to, { withSecrets = false }) => write(session, kind, { to, withSecrets }));
}

async function write(
  session: Session,
  kind: SettingsKind,
  { to, withSecrets }: { readonly to: string | undefined; readonly withSecrets: boolean },
): Promise<void> {
  const exported = await exportSettings(session, kind, withSecrets ? "database" : "server");
  const text = JSON.stringify(exported.entries, null, 2);
  if (to === undefined) session.terminal.data(text);
  else writeExport(to, text);
  if (!withSecrets) printHidden(session, kind, exported);
  const count = Object.keys(exported.entries).length;
  if (to !== undefined) session.note(`${counted(kind, count)} written to ${to}.`);
}

function printHidden(session: Session, kind: SettingsKind, { entries, hidden }: Exported): void {
  if (hidden.length > 0)
    session.note(
      `Left out, because their values are secret: ${hidden.join(", ")}. Use --with-secrets to include them.`,
    );
  if (kind.collection === "connections" && Object.keys(entries).length > 0)
    session.note("Passwords and extra are left out. Use --with-secrets to include them.");
}

function summaryOf(kind: SettingsKind, changes: readonly EntryChange[]): string {
  const count = (what: EntryChange["change"]) => changes.filter(({ change }) => change === what).length;
  const parts = (["created", "changed", "unchanged"] as const).map((what) => `${count(what)} ${what}`);
  return `${counted(kind, changes.length)}: ${parts.join(", ")}`;
}

function counted({ collection, singular }: SettingsKind, count: number): string {
  return `${count} ${count === 1 ? singular : collection}`;
}

const COLUMNS: readonly Column<EntryChange>[] = [
  { title: "NAME", value: ({ key }) => key },
  { title: "WOULD BE", value: ({ change }) => change },
  { title: "FIELDS", value: ({ fields }) => fields.join(", "), flexible: true },
];
