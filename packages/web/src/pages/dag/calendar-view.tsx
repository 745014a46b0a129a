/** A year of days, coloured by the worst state of their runs; planned runs are outlined. */
import { keepPreviousData } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useMemo, useState } from "react";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import type { GridSelection } from "../../grid/grid-view.tsx";
import { useLive } from "../../live/live.ts";
import { useThrottled } from "../../live/throttled.ts";
import { serverNow } from "../../time/clock.ts";
import { duration } from "../../time/format.ts";
import { IconButton } from "../../ui/button.tsx";
import { Loads } from "../../ui/panels.tsx";
import {
  type CalendarDay,
  calendarDays,
  calendarMonths,
  dayText,
  failureShare,
  stateOfDay,
} from "./calendar-days.ts";

const STEP = 17;
const CELL = 14;
const LEFT = 32;
const TOP = 20;
const DAY_MS = 86_400_000;
/** The calendar shows other days rarely, and counts many runs. */
const RELOAD_MS = 5_000;

export function CalendarView({
  dagId,
  selection,
  onSelect,
}: {
  readonly dagId: string;
  readonly selection: GridSelection;
  readonly onSelect: (selection: GridSelection) => void;
}) {
  const [search, setSearch] = useSearchState();
  const to = textOf(search, "to");
  const calendar = $api.useQuery(
    "get",
    "/ui/dags/{dag_id}/calendar",
    { params: { path: { dag_id: dagId }, query: { ...(to !== undefined && { to }) } } },
    { placeholderData: keepPreviousData },
  );
  const reload = useThrottled(() => calendar.refetch({ cancelRefetch: false }), RELOAD_MS);
  useLive(`dag:${dagId}`, reload);
  const days = useMemo(() => (calendar.data ? calendarDays(calendar.data) : []), [calendar.data]);
  const last = days.at(-1)?.day;
  const shift = (years: number) => {
    if (last === undefined) return;
    const next = new Date(Date.parse(last) + years * 365 * DAY_MS);
    const isNow = next.getTime() > serverNow();
    setSearch({ to: isNow ? undefined : next.toISOString().slice(0, 10) });
  };
  return (
    <div className="h-full overflow-auto px-4 pb-4">
      <Loads query={calendar}>
        {({ is_partial: isPartial, zone }) => (
          <>
            <div className="flex items-center gap-1 pb-2">
              <IconButton label="A year earlier" onClick={() => shift(-1)}>
                <ChevronLeft />
              </IconButton>
              <IconButton label="A year later" disabled={to === undefined} onClick={() => shift(1)}>
                <ChevronRight />
              </IconButton>
              <p className="text-muted">
                {days[0]?.day} – {last}, days in {zone}
                {isPartial && ". There are too many runs: the earliest are not shown."}
              </p>
            </div>
            <Year days={days} selected={selection.runId} onDay={(runId) => onSelect({ runId })} />
            <Key />
          </>
        )}
      </Loads>
    </div>
  );
}

function Year({
  days,
  selected,
  onDay,
}: {
  readonly days: readonly CalendarDay[];
  readonly selected: string | undefined;
  readonly onDay: (runId: string) => void;
}) {
  const weeks = (days.at(-1)?.week ?? 0) + 1;
  const [focused, setFocused] = useState(days.length - 1);
  const move = (event: React.KeyboardEvent<HTMLElement>, from: number) => {
    const step = { ArrowLeft: -7, ArrowRight: 7, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.min(days.length - 1, Math.max(0, from + step));
    setFocused(next);
    event.currentTarget.parentElement?.querySelector<HTMLElement>(`[data-day="${next}"]`)?.focus();
  };
  return (
    <fieldset
      className="relative"
      style={{ width: LEFT + weeks * STEP, height: TOP + 7 * STEP }}
      aria-label="Runs by day"
    >
      {calendarMonths(days).map(({ label, week }) => (
        <span
          key={`${label} ${week}`}
          className="absolute top-0 text-sm whitespace-nowrap text-muted"
          style={{ left: LEFT + week * STEP }}
        >
          {label}
        </span>
      ))}
      {["Mon", "Wed", "Fri"].map((name, index) => (
        <span
          key={name}
          className="absolute left-0 text-sm leading-3.5 text-faint"
          style={{ top: TOP + index * 2 * STEP }}
        >
          {name}
        </span>
      ))}
      {days.map((day, index) => {
        const text = `${day.day}: ${dayText(day)}${day.longest === null ? "" : `, longest ${duration(day.longest)}`}`;
        return (
          <button
            key={day.day}
            type="button"
            data-day={index}
            tabIndex={index === focused ? 0 : -1}
            title={text}
            aria-label={text}
            aria-pressed={day.runId !== null && day.runId === selected}
            aria-disabled={day.runId === null}
            onFocus={() => setFocused(index)}
            onKeyDown={(event) => move(event, index)}
            onClick={() => {
              if (day.runId !== null) onDay(day.runId);
            }}
            className="absolute rounded-[3px] border aria-pressed:outline-2 aria-pressed:outline-accent"
            style={{
              left: LEFT + day.week * STEP,
              top: TOP + day.weekday * STEP,
              width: CELL,
              height: CELL,
              ...paintOf(day),
            }}
          />
        );
      })}
    </fieldset>
  );
}

function paintOf(day: CalendarDay): { background: string; borderColor: string; borderStyle?: "dashed" } {
  const state = stateOfDay(day);
  if (state === null) return { background: "var(--raised)", borderColor: "transparent" };
  if (state === "planned")
    return { background: "transparent", borderColor: "var(--faint)", borderStyle: "dashed" };
  if (state === "success") return { background: "var(--s-success-soft)", borderColor: "transparent" };
  if (state !== "failed") return { background: `var(--s-${state})`, borderColor: "transparent" };
  // Even one failure of many is seen.
  const share = Math.round(45 + 55 * failureShare(day));
  return {
    background: `color-mix(in oklab, var(--s-failed) ${share}%, var(--surface))`,
    borderColor: "var(--s-failed)",
  };
}

const KEYS: readonly (readonly [string, React.CSSProperties])[] = [
  ["All succeeded", { background: "var(--s-success-soft)" }],
  ["Some failed", { background: "color-mix(in oklab, var(--s-failed) 55%, var(--surface))" }],
  ["All failed", { background: "var(--s-failed)" }],
  ["Running", { background: "var(--s-running)" }],
  ["Queued", { background: "var(--s-queued)" }],
  ["Planned", { border: "1px dashed var(--faint)" }],
];

function Key() {
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1 pt-3 text-sm text-muted">
      {KEYS.map(([label, style]) => (
        <span key={label} className="flex items-center gap-1.5">
          <span aria-hidden className="size-3.5 rounded-[3px]" style={style} />
          {label}
        </span>
      ))}
    </p>
  );
}
