/** A result of the search in the palette: what it is, and where it is shown. */
import { Cable, Database, type LucideIcon, SquareCheck, Variable, Waves, Workflow } from "lucide-react";
import type { components } from "../api/schema.gen.ts";
import { StateGlyph } from "../state/glyph.tsx";
import { lookOf } from "../state/states.ts";
import { dagPath, pagePath, runPath } from "./paths.ts";

export type Found = components["schemas"]["UiSearch"]["results"][number];

const ICONS: Readonly<Record<Exclude<Found["kind"], "run">, LucideIcon>> = {
  dag: Workflow,
  task: SquareCheck,
  asset: Database,
  connection: Cable,
  pool: Waves,
  variable: Variable,
};

export function PaletteResult({ result }: { readonly result: Found }) {
  const { dag_id: dag, is_paused: isPaused, kind, name, state } = result;
  const Icon = kind === "run" ? null : ICONS[kind];
  return (
    <>
      {Icon === null ? (
        <StateGlyph state={state ?? "queued"} title={lookOf(state).label} size={14} />
      ) : (
        <Icon aria-hidden className="size-3.5 shrink-0 text-muted" />
      )}
      <span className="min-w-0 truncate">
        {(kind === "task" || kind === "run") && <span className="text-muted">{dag} › </span>}
        {name}
      </span>
      <span className="ml-auto shrink-0 text-sm text-faint">
        {kind === "dag" ? (isPaused === true ? "DAG, paused" : "DAG") : kind}
      </span>
    </>
  );
}

export interface Place {
  readonly to: string;
  readonly search: Readonly<Record<string, string>>;
}

export function placeOf({ dag_id, kind, name, run_id, task_id }: Found): Place {
  switch (kind) {
    case "dag":
      return { to: dagPath(name), search: {} };
    case "task":
      return { to: dagPath(dag_id ?? ""), search: { task: task_id ?? name } };
    case "run":
      return { to: runPath(dag_id ?? "", run_id ?? name), search: {} };
    case "asset":
      return { to: pagePath("assets"), search: { q: name } };
    case "connection":
      return { to: pagePath("connections"), search: { q: name } };
    case "pool":
      return { to: pagePath("pools"), search: { q: name } };
    case "variable":
      return { to: pagePath("variables"), search: { q: name } };
  }
}
