/** One line of a log: its number as a link, time, level, and the text with its colours and matches. */
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo } from "react";
import { count } from "../time/format.ts";
import { cx } from "../ui/class-names.ts";
import { KIND, type LogLine, occurrences, SHOWN_LENGTH, shownText } from "./log-line.ts";
import { type Kind, kindOf } from "./log-rows.ts";
import { type Style, styledPieces } from "./sgr.ts";

const WORDS: Readonly<Record<Kind, string>> = {
  debug: "DEBUG",
  info: "INFO",
  warn: "WARN",
  error: "ERROR",
  trigger: "TRIG",
};
export const KIND_TEXT: Readonly<Record<Kind, string>> = {
  debug: "text-faint",
  info: "text-muted",
  warn: "text-warn",
  error: "text-danger",
  trigger: "text-wait",
};

export interface LogRowProps {
  /** From 0 on. */
  readonly number: number;
  readonly kind: number;
  readonly line: LogLine | undefined;
  readonly time: string | null;
  readonly wraps: boolean;
  readonly wanted: string;
  readonly isMatch: boolean;
  readonly isMarked: boolean;
  readonly isSelected: boolean;
  /** Of the groups around it. */
  readonly depth: number;
  /** Null: the line is not the title of a group. */
  readonly folded: boolean | null;
  /** Lines of its group. */
  readonly inside: number;
  readonly onFold: (number: number, folded: boolean) => void;
  readonly onMark: (number: number, extend: boolean) => void;
  readonly onOpen: (number: number) => void;
}

export const LogRow = memo(function LogRow({
  number,
  kind,
  line,
  time,
  wraps,
  wanted,
  isMatch,
  isMarked,
  isSelected,
  depth,
  folded,
  inside,
  onFold,
  onMark,
  onOpen,
}: LogRowProps) {
  const name = kindOf(kind);
  // A title has its arrow before it, at the place where the lines around it begin.
  const indent = depth + (folded === null ? 0 : 1);
  const isError = (kind & KIND.level) === 3;
  return (
    <div
      data-line={number}
      className={cx(
        "flex min-h-5 border-l-3 pr-4 font-mono leading-5",
        wraps ? "w-full" : "w-max min-w-full",
        isError ? "border-failed" : name === "trigger" ? "border-deferred" : "border-transparent",
        isMarked || isMatch
          ? "bg-warn-soft"
          : isError
            ? "bg-danger-soft"
            : name === "trigger" && "bg-deferred/7",
        isSelected && "bg-accent-soft",
      )}
    >
      <button
        type="button"
        tabIndex={-1}
        aria-label={`Link to line ${number + 1}`}
        onClick={(event) => onMark(number, event.shiftKey)}
        className={cx(
          "h-5 w-14 shrink-0 pr-3 text-right tabular-nums select-none hover:text-accent hover:underline",
          isMarked ? "text-text" : "text-faint",
        )}
      >
        {number + 1}
      </button>
      {time !== null && (
        <span className="w-24 shrink-0 text-muted tabular-nums select-none max-sm:hidden">{time}</span>
      )}
      <span className={cx("w-13 shrink-0 select-none max-sm:hidden", KIND_TEXT[name])}>{WORDS[name]}</span>
      <span
        data-text
        style={indent > 0 ? { paddingLeft: `${indent * 18}px` } : undefined}
        className={cx(
          "min-w-0 flex-1",
          wraps ? "break-all whitespace-pre-wrap" : "whitespace-pre",
          isError ? "text-danger" : name === "warn" && "text-warn",
        )}
      >
        {line === undefined ? (
          <span aria-hidden className="text-faint">
            …
          </span>
        ) : folded === null ? (
          <LineText line={line} wanted={wanted} onOpen={() => onOpen(number)} />
        ) : (
          <>
            <button
              type="button"
              aria-expanded={!folded}
              onClick={() => onFold(number, !folded)}
              className="-ml-4.5 inline-flex items-center gap-1 text-left font-semibold select-text hover:text-accent"
            >
              {folded ? (
                <ChevronRight aria-hidden className="size-3.5" />
              ) : (
                <ChevronDown aria-hidden className="size-3.5" />
              )}
              <LineText line={line} wanted={wanted} onOpen={() => onOpen(number)} />
            </button>
            {folded && (
              <span className="pl-2 font-sans text-sm text-faint select-none">
                {count(inside)} {inside === 1 ? "line" : "lines"}
              </span>
            )}
          </>
        )}
      </span>
    </div>
  );
});

function LineText({
  line,
  wanted,
  onOpen,
}: {
  readonly line: LogLine;
  readonly wanted: string;
  readonly onOpen: () => void;
}) {
  const text = shownText(line);
  const isCut = text.length > SHOWN_LENGTH;
  const fieldsAt = line.fields === "" ? Number.POSITIVE_INFINITY : text.length - line.fields.length;
  let at = 0;
  return (
    <>
      {styledPieces(isCut ? text.slice(0, SHOWN_LENGTH) : text).map((piece) => {
        const from = at;
        at += piece.text.length;
        return (
          <Marked
            key={from}
            text={piece.text}
            style={piece.style}
            wanted={wanted}
            quietFrom={fieldsAt - from}
          />
        );
      })}
      {(isCut || line.message.includes("\n")) && (
        <button type="button" className="link ml-2 font-sans text-sm select-none" onClick={onOpen}>
          {isCut ? `${(text.length - SHOWN_LENGTH).toLocaleString("en-US")} more characters` : "All lines"}
        </button>
      )}
    </>
  );
}

/** A text of one style with its matches; from `quietFrom` on, it is of the fields. */
function Marked({
  text,
  style,
  wanted,
  quietFrom,
}: {
  readonly text: string;
  readonly style: Style;
  readonly wanted: string;
  readonly quietFrom: number;
}) {
  const cuts = new Set([0, text.length]);
  const found = occurrences(text, wanted);
  for (const at of found) cuts.add(at).add(at + wanted.length);
  if (quietFrom > 0 && quietFrom < text.length) cuts.add(quietFrom);
  const ordered = [...cuts].sort((a, b) => a - b);
  const css = styleOf(style);
  return ordered.slice(0, -1).map((from, index) => {
    const part = text.slice(from, ordered[index + 1]);
    const isFound = found.some((at) => from >= at && from < at + wanted.length);
    const className = from >= quietFrom ? "text-muted" : undefined;
    return isFound ? (
      <mark key={from} className="rounded-sm bg-queued text-[oklch(24%_0.02_255)]">
        {part}
      </mark>
    ) : css === undefined && className === undefined ? (
      part
    ) : (
      <span key={from} style={css} className={className}>
        {part}
      </span>
    );
  });
}

/** The eight colours of terminals, as those of the theme. */
const COLORS = [
  "var(--faint)",
  "var(--danger)",
  "var(--s-success)",
  "var(--warn)",
  "var(--accent)",
  "var(--s-deferred)",
  "var(--accent)",
  "var(--text)",
] as const;

function styleOf(style: Style): React.CSSProperties | undefined {
  const { background, bold, color, dim, inverse, italic, underline } = style;
  const ink = colorOf(color);
  const paper = colorOf(background);
  if (!(bold || dim || italic || underline || inverse) && ink === undefined && paper === undefined)
    return undefined;
  return {
    color: inverse ? (paper ?? "var(--surface)") : ink,
    background: inverse ? (ink ?? "var(--text)") : paper && `color-mix(in oklab, ${paper} 30%, transparent)`,
    fontWeight: bold ? 600 : undefined,
    opacity: dim ? 0.7 : undefined,
    fontStyle: italic ? "italic" : undefined,
    textDecoration: underline ? "underline" : undefined,
  };
}

function colorOf(color: number | string | undefined): string | undefined {
  return typeof color === "number" ? COLORS[color % 8] : color;
}
