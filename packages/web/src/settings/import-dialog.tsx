/** Imports a file of settings in one request: all entries are stored, or none. Shows before what it would create and change. */
import { useState } from "react";
import { ActionDialog } from "../actions/action-dialog.tsx";
import { send } from "../actions/api-call.ts";
import { ChangeList } from "../actions/change-list.tsx";
import { commandOf, type Request } from "../actions/command-text.ts";
import { ApiProblem } from "../api/problem.ts";
import { count } from "../time/format.ts";
import { parseFile, type SettingsFile, type SettingsKind } from "./kinds.ts";

interface EntryChange {
  readonly key: string;
  readonly change: "created" | "changed" | "unchanged";
  readonly fields: readonly string[];
}

const NOTHING: SettingsFile = { entries: [], problems: [] };
const ORDER = ["changed", "created", "unchanged"] as const;

export function ImportDialog({
  kind,
  onClose,
}: {
  readonly kind: SettingsKind;
  readonly onClose: () => void;
}) {
  const { collection, singular } = kind;
  const [chosen, setChosen] = useState<{ readonly name: string; readonly file: SettingsFile }>();
  const { entries, problems } = chosen?.file ?? NOTHING;
  const isReady = entries.length > 0 && problems.length === 0;
  const request: Request = {
    method: "PATCH",
    path: `/api/v2/${collection}`,
    body: { actions: [{ action: "create", action_on_existence: "overwrite", entities: entries }] },
  };
  const text = (items: readonly EntryChange[]) => {
    const number = items.filter(({ change }) => change !== "unchanged").length;
    return `${count(number)} ${number === 1 ? singular : collection}`;
  };
  return (
    <ActionDialog<EntryChange>
      title={`Import ${collection}`}
      explanation={
        <>
          A JSON file of <code>tradewind {collection} export</code>, or of{" "}
          <code>airflow {collection} export</code>. {capital(collection)} that it does not name stay as they
          are.
        </>
      }
      emptyText={
        chosen === undefined
          ? `For example: ${kind.example}`
          : problems.length > 0
            ? "Nothing is imported while an entry is wrong."
            : `The file has no ${collection}.`
      }
      onClose={onClose}
      options={
        <div className="flex w-full flex-col gap-2">
          <input
            type="file"
            accept=".json,application/json"
            aria-label="File"
            className="self-start text-muted file:mr-3 file:h-7 file:rounded-md file:border file:border-line-strong file:bg-surface file:px-2.5 file:font-medium file:text-text hover:file:bg-hover"
            onChange={async (event) => {
              const file = event.target.files?.[0];
              if (file) setChosen({ name: file.name, file: parseFile(kind, await file.text()) });
            }}
          />
          {problems.length > 0 && (
            <ul role="alert" className="max-h-40 overflow-auto rounded-md bg-danger-soft px-3 py-2">
              {problems.map((problem) => (
                <li key={problem}>{problem}</li>
              ))}
            </ul>
          )}
        </div>
      }
      show={(items) => showChanges(items, kind, entries)}
      plan={{
        preview: (signal) => (isReady ? readChanges(kind, request, signal) : Promise.resolve([])),
        previewKey: ["import", collection, entries, isReady],
        calls: (items) => (items.some(({ change }) => change !== "unchanged") ? [request] : []),
        cli: () => [commandOf("tradewind", collection, "import", chosen?.name ?? `${collection}.json`)],
        label: (items) => `Import ${text(items)}`,
        done: (items) => `Imported ${text(items)}`,
        hasSecrets: true,
      }}
    />
  );
}

function showChanges(
  items: readonly EntryChange[],
  { key: name, plainValue }: SettingsKind,
  entries: SettingsFile["entries"],
) {
  const values = new Map(entries.map((entry) => [entry[name], plainValue?.(entry) ?? null]));
  const parts = ORDER.map((each) => [each, items.filter(({ change }) => change === each)] as const);
  return (
    <>
      <p className="pb-2 text-muted">
        {parts.map(([change, own]) => `${count(own.length)} ${change}`).join(", ")}
      </p>
      <ChangeList
        label="What will change"
        items={parts.flatMap(([, own]) =>
          own.map(({ key, change, fields }) => ({
            key,
            name: key,
            note: change === "created" ? created(values.get(key) ?? null) : noteOf(change, fields),
          })),
        )}
      />
    </>
  );
}

function noteOf(change: EntryChange["change"], fields: readonly string[]): string {
  return change === "changed" ? `changed: ${fields.join(", ")}` : change;
}

function created(value: string | null) {
  if (value === null) return "created";
  return (
    <span title={value} className="block max-w-[40ch] truncate">
      created: <span className="text-text">{value}</span>
    </span>
  );
}

/** @throws With the names of the invalid entries, which the server identifies by their index. */
async function readChanges(
  kind: SettingsKind,
  request: Request,
  signal: AbortSignal,
): Promise<readonly EntryChange[]> {
  try {
    const path = `${request.path}?dry_run=true`;
    return (await send<{ readonly changes: readonly EntryChange[] }>({ ...request, path }, signal)).changes;
  } catch (error) {
    throw error instanceof ApiProblem ? withNames(error, kind, request) : error;
  }
}

function withNames(problem: ApiProblem, { key }: SettingsKind, { body }: Request): ApiProblem {
  const { detail } = problem.document;
  if (!Array.isArray(detail)) return problem;
  const { actions } = body as { readonly actions: readonly [{ readonly entities: SettingsFile["entries"] }] };
  const lines = detail.map(({ loc: [, , , , index, ...field], msg }) => {
    const name = actions[0].entities[Number(index)]?.[key];
    const text = msg.replace(/^actions\.0\.entities\.\d+[^:]*: /, "");
    return name === undefined ? msg : `${[name, ...field].join(".")}: ${text}`;
  });
  return new ApiProblem(problem.status, { ...problem.document, detail: lines.join("; ") });
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
