/** A JSON value as a tree: collapsible, with the path and value of each part to copy. Large parts are shown in steps. */
import { ChevronDown, ChevronRight } from "lucide-react";
import { useState } from "react";
import { count } from "../time/format.ts";
import { CopyButton } from "./copy.tsx";

const STEP = 100;
const TEXT_SHOWN = 300;
const OPEN_DEPTH = 2;
const OPEN_CHILDREN = 20;

export function JsonTree({ value, name = "$" }: { readonly value: unknown; readonly name?: string }) {
  return (
    <div className="overflow-x-auto font-mono leading-5">
      <Node label={null} path={name} value={value} depth={0} />
    </div>
  );
}

interface NodeProps {
  /** Null for the root. */
  readonly label: string | null;
  readonly path: string;
  readonly value: unknown;
  readonly depth: number;
}

function Node({ depth, label, path, value }: NodeProps) {
  const entries = entriesOf(value);
  const [isOpen, setOpen] = useState(
    depth === 0 || (depth < OPEN_DEPTH && (entries?.length ?? 0) <= OPEN_CHILDREN),
  );
  const [shown, setShown] = useState(STEP);
  const isList = Array.isArray(value);
  return (
    <div>
      <div className="group flex min-h-5.5 items-start rounded-sm hover:bg-hover">
        {entries === null || entries.length === 0 ? (
          <span className="w-4 shrink-0" />
        ) : (
          <button
            type="button"
            aria-expanded={isOpen}
            aria-label={`${isOpen ? "Close" : "Open"} ${path}`}
            onClick={() => setOpen(!isOpen)}
            className="flex h-5.5 w-4 shrink-0 items-center text-faint hover:text-text [&_svg]:size-3.5"
          >
            {isOpen ? <ChevronDown /> : <ChevronRight />}
          </button>
        )}
        <span className="min-w-0 py-px">
          {label !== null && <span className="text-muted">{label}: </span>}
          {entries === null ? (
            <Scalar value={value} />
          ) : (
            <span className="text-faint">
              {isList ? `[${count(entries.length)}]` : `{${count(entries.length)}}`}
              {!isOpen && <Summary value={value} />}
            </span>
          )}
        </span>
        <span className="ml-auto flex h-5.5 shrink-0 items-center opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 [&_button]:h-5.5 [&_button]:w-6">
          <CopyButton text={path} label="Copy path" />
          <CopyButton text={JSON.stringify(value, null, 2) ?? ""} label="Copy value" />
        </span>
      </div>
      {isOpen && entries !== null && entries.length > 0 && (
        <div className="ml-2 border-l border-line pl-2">
          {entries.slice(0, shown).map(([key, child]) => (
            <Node key={key} label={key} path={pathTo(path, key, isList)} value={child} depth={depth + 1} />
          ))}
          {entries.length > shown && (
            <button type="button" className="link ml-4 font-sans" onClick={() => setShown(shown + 10 * STEP)}>
              {count(entries.length - shown)} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Scalar({ value }: { readonly value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string")
    return <span className={value === null ? "text-faint" : "text-accent"}>{String(value)}</span>;
  const isLong = value.length > TEXT_SHOWN && !isWhole;
  return (
    <span className="break-all whitespace-pre-wrap text-text">
      "{isLong ? value.slice(0, TEXT_SHOWN) : value}
      {isLong ? (
        <button type="button" className="link ml-1 font-sans" onClick={() => setWhole(true)}>
          {count(value.length - TEXT_SHOWN)} more characters
        </button>
      ) : (
        '"'
      )}
    </span>
  );
}

/** The beginning of what a closed part contains. */
function Summary({ value }: { readonly value: unknown }) {
  const entries = entriesOf(value)!.slice(0, 3);
  const text = entries
    .map(([key, child]) => {
      const part = entriesOf(child) === null ? JSON.stringify(child)?.slice(0, 40) : "…";
      return Array.isArray(value) ? part : `${key}: ${part}`;
    })
    .join(", ");
  return <span className="ml-2">{text.slice(0, 120)}</span>;
}

function entriesOf(value: unknown): [string, unknown][] | null {
  return typeof value === "object" && value !== null ? Object.entries(value) : null;
}

/** As it is written in JavaScript. */
function pathTo(parent: string, key: string, isList: boolean): string {
  if (isList) return `${parent}[${key}]`;
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${parent}.${key}` : `${parent}[${JSON.stringify(key)}]`;
}
