/** Imports a file of settings in one request: all entries are stored, or none. */
import { HttpError } from "../client/http-error.ts";
import { CliError, type FieldProblem, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { parseJson, readFile } from "../input/values.ts";
import type { Session } from "../session.ts";
import type { Entry, SettingsKind } from "./kinds.ts";

export interface EntryChange {
  readonly key: string;
  readonly change: "created" | "changed" | "unchanged";
  readonly fields: readonly string[];
}

/** @throws With every invalid entry, found here or by the server; nothing is changed then. */
export async function importSettings(
  session: Session,
  kind: SettingsKind,
  { dryRun, file }: { readonly dryRun: boolean; readonly file: string },
): Promise<EntryChange[]> {
  const name = file === "-" ? "standard input" : file;
  const parsed = parseEntries(kind, parseJson(readFile(file), name), name);
  const { entries, problems } = parsed;
  const isWrong = problems.length > 0;
  try {
    const changes = await send(session, kind, { entries, dryRun: dryRun || isWrong });
    if (!isWrong) return changes;
  } catch (error) {
    const found =
      error instanceof HttpError && error.status === 422 ? entryProblems(kind, entries, error) : [];
    if (found.length === 0) throw error;
    problems.push(...found);
  }
  throw refused(name, { total: parsed.total, problems });
}

async function send(
  { client }: Session,
  { collection }: SettingsKind,
  { dryRun, entries }: { readonly dryRun: boolean; readonly entries: readonly Entry[] },
): Promise<EntryChange[]> {
  const answer = await client.patch<{ changes: EntryChange[] }>(`/${collection}`, {
    what: `cannot import the ${collection}`,
    body: { actions: [{ action: "create", action_on_existence: "overwrite", entities: entries }] },
    query: { dry_run: dryRun },
  });
  return answer.changes;
}

function parseEntries(kind: SettingsKind, value: unknown, file: string) {
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw usageError(`${file} must be a JSON object of ${kind.collection}.`, kind.example);
  const entries: Entry[] = [];
  const problems: FieldProblem[] = [];
  const all = Object.entries(value);
  for (const [name, given] of all) {
    try {
      entries.push(kind.parse(name, given));
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      problems.push({ field: name, message: error.message });
    }
  }
  return { entries, problems, total: all.length };
}

/** The server identifies an entry by its index in the request. */
function entryProblems(kind: SettingsKind, entries: readonly Entry[], error: HttpError): FieldProblem[] {
  return error.fields.map(({ field, message }) => {
    const [, index, rest = ""] = /^actions\.0\.entities\.(\d+)(\..*)?$/.exec(field) ?? [];
    return index === undefined
      ? { field, message }
      : { field: `${entries[Number(index)]?.[kind.key]}${rest}`, message };
  });
}

function refused(
  file: string,
  { problems, total }: { readonly problems: readonly FieldProblem[]; readonly total: number },
): CliError {
  const wrong = new Set(problems.map(({ field }) => field)).size;
  return new CliError(
    "TW_CLI_SETTINGS",
    `cannot import ${file}: ${wrong} ${wrong === 1 ? "value" : "values"} of its ${total} entries ${wrong === 1 ? "is" : "are"} invalid. Nothing was changed.`,
    { exit: EXIT.usage, fields: problems },
  );
}
