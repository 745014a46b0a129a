/** What the colours and marks of the grid mean. */
import { memo } from "react";
import { StateGlyph } from "../../state/glyph.tsx";
import { TASK_LOOKS } from "../../state/states.ts";
import { bounded } from "../../time/format.ts";

const STATES = [
  ...(["success", "running", "deferred", "queued", "scheduled"] as const),
  ...(["up_for_retry", "failed", "upstream_failed", "skipped"] as const),
];

const MARKS: readonly (readonly [string, React.ReactNode])[] = [
  [
    "Success after a retry",
    <g key="retry">
      <path d="M1 0h10v14H1z" fill="var(--s-success-soft)" />
      <path d="M5 0h6v6z" fill="var(--s-retry)" />
    </g>,
  ],
  [
    "Mapped task",
    <g key="mapped">
      <path d="M1 0h10v3H1z" fill="var(--s-failed)" />
      <path d="M1 4h10v3H1zM1 8h10v3H1zM1 12h10v2H1z" fill="var(--s-success-soft)" />
    </g>,
  ],
  ["Manual", <path key="manual" d="M3 4l6 3-6 3z" fill="var(--muted)" />],
  ["Backfill", <path key="backfill" d="M6 3.5L9.5 7 6 10.5 2.5 7z" fill="var(--muted)" />],
  ["Note", <path key="note" d="M1 3h10v7H6l-3 3v-3H1z" fill="var(--accent)" />],
  ["New version", <path key="version" d="M6 0v14" stroke="var(--muted)" strokeDasharray="2 2" />],
];

export const Legend = memo(function Legend({
  columns,
  failed,
  hasMore,
  isLoading,
}: {
  readonly columns: number;
  /** How many of these runs have failed. */
  readonly failed: number;
  readonly hasMore: boolean;
  readonly isLoading: boolean;
}) {
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-t border-line px-4 py-1.5 text-sm text-muted max-md:hidden">
      {STATES.map((state) => (
        <span key={state} className="flex items-center gap-1.5">
          <StateGlyph state={state} size={14} />
          {TASK_LOOKS[state].label}
        </span>
      ))}
      {MARKS.map(([label, drawing]) => (
        <span key={label} className="flex items-center gap-1.5">
          <svg aria-hidden width={12} height={14} viewBox="0 0 12 14">
            {drawing}
          </svg>
          {label}
        </span>
      ))}
      <span role="status" className="ml-auto tabular-nums">
        {isLoading ? (
          "Loading older runs…"
        ) : (
          <>
            {bounded({ count: columns, more: hasMore })} {columns === 1 ? "run" : "runs"}
            {failed > 0 && <span className="text-danger">, {failed} failed</span>}
          </>
        )}
      </span>
    </div>
  );
});
