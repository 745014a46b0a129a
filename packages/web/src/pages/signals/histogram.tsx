/** Signals over time above the log. Dragging, or arrows and Enter, select a range of time. */
import { keepPreviousData } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { $api } from "../../api/client.ts";
import { usePreferences } from "../../app/preferences.ts";
import { clock, count, dateTime, monthDay } from "../../time/format.ts";
import { BUCKETS, niceTop, type Series, selectedRange, type TimeRange, totals } from "./time-range.ts";

/** One hue: colours are for states. The most frequent name is the darkest. */
const SHADES = [100, 70, 48, 32, 20].map(
  (part) => `color-mix(in oklab, var(--accent) ${part}%, var(--surface))`,
);
const OTHERS = "var(--line-strong)";
const HALF_DAY = 43_200_000;

const signals = (number: number) => `${count(number)} ${number === 1 ? "signal" : "signals"}`;

export function Histogram({
  filter,
  range,
  onSelect,
  onName,
}: {
  readonly filter: { readonly namespace?: string; readonly key?: string[]; readonly sender?: string };
  readonly range: TimeRange;
  readonly onSelect: (range: { readonly from: string; readonly to: string }) => void;
  readonly onName: (name: string) => void;
}) {
  const query = $api.useQuery(
    "get",
    "/ui/signals/histogram",
    {
      params: {
        query: {
          ...filter,
          from: new Date(range.from).toISOString(),
          to: new Date(range.to).toISOString(),
          buckets: BUCKETS,
        },
      },
    },
    { placeholderData: keepPreviousData },
  );
  const series = query.data?.series ?? [];
  return (
    <section aria-label="Signals over time" className="border-b border-line px-4 pt-2 pb-1.5">
      <Bars
        series={series}
        range={range}
        completeSince={query.data?.complete_since ?? null}
        onSelect={(first, last) => onSelect(selectedRange(range, first, last))}
      />
      <Legend series={series} onName={onName} />
    </section>
  );
}

function Bars({
  series,
  range,
  completeSince,
  onSelect,
}: {
  readonly series: readonly Series[];
  readonly range: TimeRange;
  readonly completeSince: string | null;
  readonly onSelect: (first: number, last: number) => void;
}) {
  const { zone } = usePreferences();
  const area = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const [anchor, setAnchor] = useState<number | null>(null);
  const sums = totals(series);
  const top = niceTop(Math.max(...sums));
  const bucketOf = (x: number) => {
    const { left, width } = area.current!.getBoundingClientRect();
    return Math.min(BUCKETS - 1, Math.max(0, Math.floor(((x - left) / width) * BUCKETS)));
  };
  const time = (bucket: number) => range.from + bucket * range.step;
  const [low, high] = at === null ? [0, -1] : [Math.min(at, anchor ?? at), Math.max(at, anchor ?? at)];
  const inside = sums.slice(low, high + 1).reduce((sum, each) => sum + each, 0);
  const isLong = range.to - range.from > HALF_DAY;
  const label = (moment: number) =>
    isLong ? `${monthDay(moment, zone)} ${clock(moment, zone).slice(0, 5)}` : clock(moment, zone);
  const all = sums.reduce((sum, each) => sum + each, 0);
  const text =
    at === null ? signals(all) : `${signals(inside)} from ${label(time(low))} to ${label(time(high + 1))}`;
  const unknown =
    completeSince === null
      ? 0
      : Math.min(1, Math.max(0, (Date.parse(completeSince) - range.from) / (range.to - range.from)));
  const leave = () => {
    setAt(null);
    setAnchor(null);
  };
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_max-content] gap-x-2 text-sm text-muted">
      <div
        ref={area}
        role="slider"
        tabIndex={0}
        aria-label="Select a range of time"
        aria-valuemin={0}
        aria-valuemax={BUCKETS - 1}
        aria-valuenow={at ?? BUCKETS - 1}
        aria-valuetext={
          at === null ? `${text} from ${dateTime(range.from, zone)} to ${dateTime(range.to, zone)}` : text
        }
        className="relative flex h-14 cursor-crosshair touch-pan-y items-end gap-px"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const bucket = bucketOf(event.clientX);
          setAt(bucket);
          setAnchor(bucket);
        }}
        onPointerMove={(event) => setAt(bucketOf(event.clientX))}
        onPointerLeave={() => anchor === null && setAt(null)}
        onPointerCancel={leave}
        onPointerUp={(event) => {
          if (anchor !== null) onSelect(anchor, bucketOf(event.clientX));
          leave();
        }}
        onBlur={leave}
        onKeyDown={(event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            const from = at ?? BUCKETS;
            setAnchor(event.shiftKey ? (anchor ?? from) : null);
            setAt(Math.min(BUCKETS - 1, Math.max(0, from + step)));
          } else if (event.key === "Enter" && at !== null) {
            onSelect(anchor ?? at, at);
            leave();
          }
        }}
      >
        {unknown > 0 && (
          <div
            className="absolute inset-y-0 left-0 bg-[repeating-linear-gradient(135deg,var(--line)_0_1px,transparent_1px_6px)]"
            style={{ width: `${100 * unknown}%` }}
            title="Too many signals: older ones are not counted"
          />
        )}
        {sums.map((sum, bucket) => (
          <div
            // biome-ignore lint/suspicious/noArrayIndexKey: a bucket is its index
            key={bucket}
            className={`relative flex h-full min-w-0 flex-1 flex-col-reverse ${bucket >= low && bucket <= high ? "bg-hover" : ""}`}
          >
            {series.map(({ counts, name }, index) => (
              <div
                key={name ?? ""}
                style={{
                  height: `${(100 * (counts[bucket] ?? 0)) / top}%`,
                  minHeight: (counts[bucket] ?? 0) > 0 ? 2 : 0,
                  background: name === null ? OTHERS : SHADES[index],
                }}
              />
            ))}
            {sum === 0 && <div className="h-px bg-line" />}
          </div>
        ))}
      </div>
      <div aria-hidden className="flex h-14 flex-col justify-between text-right tabular-nums">
        <span>{count(top)}</span>
        <span>0</span>
      </div>
      <div aria-hidden className="flex justify-between gap-2 pt-1 tabular-nums">
        <span className="whitespace-nowrap">{label(range.from)}</span>
        <span className="truncate text-text">{text}</span>
        <span className="whitespace-nowrap">{label(range.to)}</span>
      </div>
    </div>
  );
}

function Legend({
  series,
  onName,
}: {
  readonly series: readonly Series[];
  readonly onName: (name: string) => void;
}) {
  if (series.length < 2) return null;
  const sum = ({ counts }: Series) => count(counts.reduce((total, each) => total + each, 0));
  return (
    <ul className="flex flex-wrap items-center gap-x-3 pt-0.5">
      {series.map((each, index) => (
        <li key={each.name ?? ""} className="flex min-h-6 items-center gap-1.5">
          <span
            aria-hidden
            className="size-2.5 rounded-sm"
            style={{ background: each.name === null ? OTHERS : SHADES[index] }}
          />
          {each.name === null ? (
            <span className="text-muted">others</span>
          ) : (
            <button
              type="button"
              title={`Only ${each.name}`}
              className="min-h-6 max-w-[24ch] truncate font-mono hover:underline"
              onClick={() => onName(each.name!)}
            >
              {each.name}
            </button>
          )}
          <span className="text-muted tabular-nums">{sum(each)}</span>
        </li>
      ))}
    </ul>
  );
}
