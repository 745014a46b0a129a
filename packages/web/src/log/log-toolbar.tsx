/** What of a log is shown, and how. */
import { ArrowDownToLine, Clock, Copy, Download, UnfoldVertical, WrapText } from "lucide-react";
import type { ReactNode } from "react";
import { count } from "../time/format.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { cx } from "../ui/class-names.ts";
import { KIND_TEXT } from "./log-row.tsx";
import type { Kind } from "./log-rows.ts";

const SHOWN: readonly (readonly [Kind, string])[] = [
  ["error", "Error"],
  ["warn", "Warn"],
  ["info", "Info"],
  ["debug", "Debug"],
  ["trigger", "Trigger"],
];

export interface LogToolbarProps {
  readonly search: ReactNode;
  readonly counts: Readonly<Record<Kind, number>>;
  /** Null: all. */
  readonly kinds: ReadonlySet<Kind> | null;
  readonly onKinds: (kinds: ReadonlySet<Kind> | null) => void;
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
        {kinds !== null && (
          <Toggle
            on={props.hasContext}
            onChange={props.onContext}
            label="Lines around"
            icon={<UnfoldVertical />}
          />
        )}
        <div className="ml-auto flex items-center gap-1">
          <Toggle on={props.wraps} onChange={props.onWraps} label="Wrap" icon={<WrapText />} />
          <Toggle
            on={props.hasTime}
            onChange={props.onTime}
            label="Time"
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
            <span className="@max-4xl:sr-only">Follow</span>
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
      className={cx(on && "bg-hover text-text", className)}
      onClick={() => onChange(!on)}
    >
      {icon}
      <span className="@max-4xl:sr-only">{label}</span>
    </Button>
  );
}
