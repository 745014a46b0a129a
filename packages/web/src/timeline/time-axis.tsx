/** The moments above a timeline, and the buttons that zoom it. */
import { Maximize2, ZoomIn, ZoomOut } from "lucide-react";
import { clock, day } from "../time/format.ts";
import { IconButton } from "../ui/button.tsx";
import type { Window } from "./time-scale.ts";

const DAY = 86_400_000;

export function TimeAxis({
  view,
  width,
  origin,
  step,
  ticks,
  zone,
  now,
  usualEnd,
  isZoomed,
  onZoom,
}: {
  readonly view: Window;
  readonly width: number;
  readonly origin: number;
  readonly step: number;
  readonly ticks: readonly number[];
  readonly zone: string;
  readonly now: number | null;
  readonly usualEnd: number | null;
  readonly isZoomed: boolean;
  /** A factor; 0 shows all. */
  readonly onZoom: (factor: number) => void;
}) {
  const x = (at: number) => ((at - view.from) / (view.to - view.from)) * width;
  const isIn = (at: number | null): at is number => at !== null && at >= view.from && at <= view.to;
  /** Not below the labels of other moments. */
  const isFree = (at: number) =>
    !(isIn(now) && Math.abs(x(at) - x(now)) < 76) &&
    !(isIn(usualEnd) && x(usualEnd) - x(at) < 110 && x(at) - x(usualEnd) < 30);
  return (
    <div className="flex h-8 shrink-0 border-b border-line">
      <div className="flex w-(--names) shrink-0 items-center gap-0.5 border-r border-line pr-2 pl-4 text-sm text-muted">
        <span className="mr-auto">Task</span>
        <IconButton label="Zoom in (+)" className="h-6 w-6" onClick={() => onZoom(0.66)}>
          <ZoomIn />
        </IconButton>
        <IconButton label="Zoom out (−)" className="h-6 w-6" disabled={!isZoomed} onClick={() => onZoom(1.5)}>
          <ZoomOut />
        </IconButton>
        <IconButton label="Show all (0)" className="h-6 w-6" disabled={!isZoomed} onClick={() => onZoom(0)}>
          <Maximize2 />
        </IconButton>
      </div>
      <div aria-hidden className="relative min-w-0 flex-1 overflow-hidden text-sm text-muted tabular-nums">
        {ticks.filter(isFree).map((at) => (
          <span
            key={at}
            className="absolute top-1.5 -translate-x-1/2 whitespace-nowrap"
            style={{ left: Math.min(width - 32, Math.max(32, x(at))) }}
          >
            {tickText(origin + at, step, zone)}
          </span>
        ))}
        {isIn(usualEnd) && (
          <span
            className="absolute top-1.5 -translate-x-full bg-bg pr-1 pl-1 whitespace-nowrap"
            style={{ left: x(usualEnd) }}
          >
            usual end ▸
          </span>
        )}
        {isIn(now) && (
          <span
            className="absolute top-1 -translate-x-1/2 rounded-sm bg-text px-1.5 py-0.5 whitespace-nowrap text-bg"
            style={{ left: Math.min(width - 44, x(now)) }}
          >
            now {clock(origin + now, zone)}
          </span>
        )}
      </div>
    </div>
  );
}

function tickText(at: number, step: number, zone: string): string {
  if (step >= DAY) return day(at, zone).slice(5);
  const text = clock(at, zone);
  if (step >= 60_000) return text.slice(0, 5);
  return step >= 1_000 ? text : `${text.slice(6)}.${String(at % 1_000).padStart(3, "0")}`;
}
