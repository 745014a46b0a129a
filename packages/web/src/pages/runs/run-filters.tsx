/** The filters of the list of runs. All of them are in the address. */

import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { cx } from "../../ui/class-names.ts";
import { SearchBox, Select } from "../../ui/field.tsx";
import { KIND_WORDS } from "../run/run-data.ts";

const RUN_STATES = ["running", "queued", "failed", "success"] as const;
export type RunState = (typeof RUN_STATES)[number];
type RunKind = keyof typeof KIND_WORDS;

/** Hours back from now, by the date of the run. */
export const SPANS = { "1h": 1, "24h": 24, "7d": 168, "30d": 720 } as const;
type Span = keyof typeof SPANS;

const SPAN_WORDS: Readonly<Record<Span, string>> = {
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
};

export interface RunFilter {
  readonly states: readonly RunState[];
  readonly kind: RunKind | undefined;
  readonly dag: string | undefined;
  readonly span: Span | undefined;
}

export function readFilter(text: (name: string) => string | undefined): RunFilter {
  const kind = text("kind");
  const span = text("since");
  return {
    states: RUN_STATES.filter((state) => (text("state") ?? "").split(".").includes(state)),
    kind: kind !== undefined && kind in KIND_WORDS ? (kind as RunKind) : undefined,
    dag: text("dag"),
    span: span !== undefined && span in SPANS ? (span as Span) : undefined,
  };
}

export function RunFilters({
  filter: { dag, kind, span, states },
  onChange,
}: {
  readonly filter: RunFilter;
  readonly onChange: (change: Readonly<Record<string, string | undefined>>) => void;
}) {
  const toggle = (state: RunState) => {
    const next = states.includes(state) ? states.filter((each) => each !== state) : [...states, state];
    onChange({ state: next.length === 0 ? undefined : next.join(".") });
  };
  return (
    <div className="flex flex-wrap items-center gap-2 px-4 pb-2">
      <SearchBox
        label="DAG"
        value={dag ?? ""}
        onChange={(value) => onChange({ dag: value })}
        className="w-52 max-sm:w-full"
      />
      {/* biome-ignore lint/a11y/useSemanticElements: buttons, not a group of fields */}
      <div role="group" aria-label="States" className="flex gap-0.5">
        {RUN_STATES.map((state) => (
          <button
            key={state}
            type="button"
            aria-pressed={states.includes(state)}
            onClick={() => toggle(state)}
            className={cx(
              "flex h-7 items-center gap-1.5 rounded-md px-2 whitespace-nowrap",
              states.includes(state)
                ? "bg-accent-soft font-medium"
                : "text-muted hover:bg-hover hover:text-text",
            )}
          >
            <StateGlyph state={state} size={14} />
            <span className="max-sm:sr-only">{lookOf(state).label}</span>
          </button>
        ))}
      </div>
      <Select
        aria-label="Started by"
        value={kind ?? ""}
        onChange={(event) => onChange({ kind: event.target.value })}
      >
        <option value="">Any cause</option>
        {Object.entries(KIND_WORDS).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </Select>
      <Select
        aria-label="Time"
        value={span ?? ""}
        onChange={(event) => onChange({ since: event.target.value })}
      >
        <option value="">Any time</option>
        {Object.entries(SPAN_WORDS).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </Select>
    </div>
  );
}
