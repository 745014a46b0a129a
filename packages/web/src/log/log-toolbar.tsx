/** What of a log is shown, and how. */
import {
  ArrowDownToLine,
  ChevronDown,
  ChevronsDownUp,
  ChevronsUpDown,
  Clock,
  Copy,
  Download,
  UnfoldVertical,
  WrapText,
} from "lucide-react";
import type { ReactNode } from "react";
import { count } from "../time/format.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { cx } from "../ui/class-names.ts";
import { Menu, MenuLabel, MenuRadio } from "../ui/menu.tsx";
import { KIND_TEXT } from "./log-row.tsx";
import { type Kind, SOURCES, type Source } from "./log-rows.ts";

const SHOWN: readonly (readonly [Kind, string])[] = [
  ["error", "Error"],
  ["warn", "Warn"],
  ["info", "Info"],
  ["debug", "Debug"],
  ["trigger", "Trigger"],
];

const SOURCE_WORDS: Readonly<Record<Source, string>> = {
  task: "ctx.log",
  stdout: "stdout",
  stderr: "stderr",
  engine: "Tradewind",
};

export interface LogToolbarProps {
  readonly search: ReactNode;
  readonly counts: Readonly<Record<Kind, number>>;
  /** Null: all. */
  readonly kinds: ReadonlySet<Kind> | null;
  readonly onKinds: (kinds: ReadonlySet<Kind> | null) => void;
  readonly source: Source | null;
  readonly onSource: (source: Source | null) => void;
  /** Null: nothing can be folded. */
  readonly folding: {
    readonly someFolded: boolean;
    readonly foldAll: (folded: boolean) => void;
  } | null;
  readonly hasContext: boolean;
  readonly onContext: (hasContext: boolean) => void;
  readonly wraps: boolean;
  readonly onWraps: (wraps: boolean) => void;
  readonly hasTime: boolean;
  readonly onTime: (hasTime: boolean) => void;
  readonly follows: boolean;
  readonly onFollow: () => void;
  readonly onCopy: () => void;
  readonly onDownload: () => void;
}

export function LogToolbar(props: LogToolbarProps) {
  const { counts, kinds, onKinds } = props;
  const toggle = (kind: Kind) => {
    const next = new Set(kinds ?? []);
    if (!next.delete(kind)) next.add(kind);
    onKinds(next.size === 0 ? null : next);
  };
  return (
    <div className="@container border-b border-line">
      <div className="flex flex-wrap items-center gap-2 px-4 py-2 max-sm:px-2">
        {props.search}
        {/* biome-ignore lint/a11y/useSemanticElements: buttons, not a group of fields */}
        <div
          role="group"
          aria-label="Only lines of"
          className="flex overflow-hidden rounded-md border border-line empty:hidden"
        >
          {SHOWN.filter(([kind]) => counts[kind] > 0 || kinds?.has(kind)).map(([kind, label]) => (
            <button
              key={kind}
              type="button"
              aria-pressed={kinds?.has(kind) ?? false}
              onClick={() => toggle(kind)}
              className={cx(
                "flex h-6.5 items-center gap-1.5 border-r border-line px-2 last:border-r-0 hover:bg-hover",
                kinds?.has(kind) ? "bg-accent-soft font-medium" : "bg-surface",
                KIND_TEXT[kind],
              )}
            >
              {label}
              <span className="text-sm text-faint tabular-nums">{count(counts[kind])}</span>
            </button>
          ))}
        </div>
        <Menu
          align="start"
          trigger={
            <Button
              aria-label={`Source: ${props.source === null ? "any" : SOURCE_WORDS[props.source]}`}
              className={cx("h-6.5 font-normal", props.source !== null && "bg-accent-soft")}
            >
              {props.source === null ? "Source" : SOURCE_WORDS[props.source]}
              <ChevronDown aria-hidden />
            </Button>
          }
        >
          <MenuLabel>Only lines written by</MenuLabel>
          <MenuRadio
            value={props.source ?? "any"}
            onChange={(value) => props.onSource(SOURCES.find((each) => each === value) ?? null)}
            options={[
              { value: "any", label: "Any source" },
              ...SOURCES.map((each) => ({ value: each, label: SOURCE_WORDS[each] })),
            ]}
          />
        </Menu>
        {(kinds !== null || props.source !== null) && (
          <Toggle
            on={props.hasContext}
            onChange={props.onContext}
            label="Lines around"
            icon={<UnfoldVertical />}
          />
        )}
        <div className="ml-auto flex items-center gap-1">
          {props.folding !== null && (
            <IconButton
              label={props.folding.someFolded ? "Unfold all groups" : "Fold all groups"}
              onClick={() => props.folding?.foldAll(!props.folding.someFolded)}
            >
              {props.folding.someFolded ? <ChevronsUpDown /> : <ChevronsDownUp />}
            </IconButton>
          )}
          <Toggle on={props.wraps} onChange={props.onWraps} label="Wrap lines" icon={<WrapText />} />
          <Toggle
            on={props.hasTime}
            onChange={props.onTime}
            label="Times"
            icon={<Clock />}
            className="max-sm:hidden"
          />
          <Button
            kind="quiet"
            aria-pressed={props.follows}
            className={cx(props.follows && "bg-hover text-text")}
            onClick={props.onFollow}
            title="Show the end, and stay there (End)"
          >
            <ArrowDownToLine aria-hidden />
            <span className="@max-3xl:sr-only">Follow</span>
          </Button>
          <IconButton label="Download as text" onClick={props.onDownload}>
            <Download />
          </IconButton>
          <IconButton label="Copy the whole log" onClick={props.onCopy}>
            <Copy />
          </IconButton>
        </div>
      </div>
    </div>
  );
}

function Toggle({
  on,
  onChange,
  label,
  icon,
  className,
}: {
  readonly on: boolean;
  readonly onChange: (on: boolean) => void;
  readonly label: string;
  readonly icon: ReactNode;
  readonly className?: string;
}) {
  return (
    <Button
      kind="quiet"
      aria-pressed={on}
      title={label}
      className={cx(on && "bg-hover text-text", className)}
      onClick={() => onChange(!on)}
    >
      {icon}
      <span className="@max-3xl:sr-only">{label}</span>
    </Button>
  );
}
