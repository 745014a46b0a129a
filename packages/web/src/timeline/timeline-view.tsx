/**
 * The timeline of a run: names at the left, which are buttons, and a canvas at the right. Both show only the rows in the window.
 * Wheel and arrows pan and zoom; a row opens its details.
 */
import {
  type KeyboardEvent,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { usePreferences } from "../app/preferences.ts";
import { useCanvasPaint } from "../state/use-canvas-paint.ts";
import { useNow } from "../time/clock.ts";
import { useWidth } from "../ui/use-width.ts";
import { TimeAxis } from "./time-axis.tsx";
import { panned, ticksOf, type Window, wholeOf, within, zoomed } from "./time-scale.ts";
import type { Timeline } from "./timeline-data.ts";
import { TimelineLabel } from "./timeline-label.tsx";
import { drawTimeline } from "./timeline-paint.ts";
import { type Row, rowAt } from "./timeline-rows.ts";

/** Where a wheel or a key zooms to. */
const ZOOM = 1.25;
const PAN = 0.15;

export interface TimelineViewProps {
  readonly timeline: Timeline;
  readonly rows: readonly Row[];
  readonly showPath: boolean;
  readonly selectedTask: string | null;
  readonly onSelect: (taskId: string | null) => void;
  readonly onOpen: (taskId: string) => void;
  readonly onToggle: (groupId: string) => void;
}

export function TimelineView(props: TimelineViewProps) {
  const { onOpen, onSelect, onToggle, rows, selectedTask, showPath, timeline } = props;
  const { zone } = usePreferences();
  const paint = useCanvasPaint();
  const scroller = useRef<HTMLElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const canvasBox = useRef<HTMLDivElement>(null);
  const width = useWidth(canvasBox);
  const [height, setHeight] = useState(400);
  const [scrollTop, setScrollTop] = useState(0);
  const [hovered, setHovered] = useState<number | null>(null);
  const [chosen, setChosen] = useState<Window | null>(null);
  const isRunning = timeline.run.ended === null;
  const present = usePresent(timeline, isRunning);
  const whole = useMemo(() => wholeOfRun(timeline, present), [timeline, present]);
  const view = chosen === null ? whole : within(chosen, whole);
  const total = rows.length === 0 ? 0 : rows.at(-1)!.top + rows.at(-1)!.height;
  const first = rowAt(rows, scrollTop);
  const last = Math.min(rows.length, rowAt(rows, scrollTop + height) + 1);
  const selected = rows.findIndex((row) => row.kind === "task" && row.task.taskId === selectedTask);
  const onPath = useMemo(() => new Set(timeline.path.map(({ task }) => task)), [timeline]);
  const { step, ticks } = ticksOf(view, width, timeline.origin);

  useLayoutEffect(() => {
    const element = scroller.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = canvas.current!;
    const scale = devicePixelRatio;
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (element.width !== w || element.height !== h) {
      element.width = w;
      element.height = h;
    }
    if (width === 0) return;
    const context = element.getContext("2d")!;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawTimeline(
      context,
      {
        timeline,
        rows,
        first,
        last,
        scrollTop,
        view,
        width,
        height,
        now: present,
        isRunning,
        ticks,
        showPath,
        hovered,
        selected: selected < 0 ? null : selected,
      },
      paint,
    );
  });

  // Not passive: the page must not be zoomed or moved.
  const onWheel = useRef<(event: WheelEvent) => void>(() => {});
  onWheel.current = (event) => {
    const box = canvas.current!.getBoundingClientRect();
    const perPx = (view.to - view.from) / Math.max(1, width);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const around = view.from + (event.clientX - box.left) * perPx;
      setChosen(zoomed(view, ZOOM ** (event.deltaY / 60), around, whole));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      setChosen(panned(view, (event.deltaX || event.deltaY) * perPx, whole));
    }
  };
  useEffect(() => {
    const element = canvasBox.current!;
    const listener = (event: WheelEvent) => onWheel.current(event);
    element.addEventListener("wheel", listener, { passive: false });
    return () => element.removeEventListener("wheel", listener);
  }, []);

  const zoom = (factor: number) => {
    const middle = (view.from + view.to) / 2;
    setChosen(factor === 0 ? null : zoomed(view, factor, middle, whole));
  };
  const move = (by: number) => {
    const tasks = rows.flatMap((row, at) => (row.kind === "task" ? [at] : []));
    const from = tasks.indexOf(selected);
    const next = tasks[Math.min(tasks.length - 1, Math.max(0, from < 0 ? 0 : from + by))];
    const row = next === undefined ? undefined : rows[next];
    if (row?.kind !== "task") return;
    onSelect(row.task.taskId);
    const element = scroller.current!;
    if (row.top < element.scrollTop) element.scrollTop = row.top;
    else if (row.top + row.height > element.scrollTop + element.clientHeight)
      element.scrollTop = row.top + row.height - element.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const length = view.to - view.from;
    switch (event.key) {
      case "ArrowDown":
      case "ArrowUp":
        move(event.key === "ArrowDown" ? 1 : -1);
        break;
      case "ArrowLeft":
      case "ArrowRight":
        setChosen(panned(view, (event.key === "ArrowLeft" ? -PAN : PAN) * length, whole));
        break;
      case "+":
      case "=":
        zoom(1 / ZOOM);
        break;
      case "-":
        zoom(ZOOM);
        break;
      case "0":
        zoom(0);
        break;
      case "Escape":
        onSelect(null);
        break;
      case "Enter":
        // On another button, it presses that.
        if (selectedTask === null || !(event.target === scroller.current || isPressed(event.target))) return;
        onOpen(selectedTask);
        break;
      default:
        return;
    }
    event.preventDefault();
  };
  const drag = useDrag(view, width, (next) => setChosen(within(next, whole)));
  const at = useCallback(
    (clientY: number) => rowAt(rows, clientY - scroller.current!.getBoundingClientRect().top + scrollTop),
    [rows, scrollTop],
  );
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <TimeAxis
        view={view}
        width={width}
        origin={timeline.origin}
        step={step}
        ticks={ticks}
        zone={zone}
        now={isRunning ? present : null}
        usualEnd={usualEnd(timeline)}
        isZoomed={chosen !== null}
        onZoom={zoom}
      />
      <section
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys select rows, zoom and pan
        tabIndex={0}
        aria-label="Timeline. Arrows select tasks and move the time, plus and minus zoom, Enter opens a task."
        onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
        onPointerLeave={() => setHovered(null)}
        onPointerMove={(event) => {
          const row = at(event.clientY);
          setHovered(row < rows.length ? row : null);
        }}
        className="min-h-0 flex-1 overflow-x-hidden overflow-y-auto outline-none"
      >
        <div style={{ height: Math.max(total, 1) }}>
          <div style={{ height }} className="sticky top-0 flex overflow-hidden">
            <div className="relative w-(--names) shrink-0 overflow-hidden border-r border-line">
              {rows.slice(first, last).map((row, index) => (
                <TimelineLabel
                  key={row.kind === "group" ? `group ${row.groupId}` : row.task.taskId}
                  row={row}
                  top={row.top - scrollTop}
                  timeline={timeline}
                  now={present}
                  isSelected={first + index === selected}
                  isHovered={first + index === hovered}
                  isOnPath={showPath && row.kind === "task" && onPath.has(row.position)}
                  onSelect={onSelect}
                  onOpen={onOpen}
                  onToggle={onToggle}
                />
              ))}
            </div>
            {/* biome-ignore lint/a11y/noStaticElementInteractions: the names are the buttons; this is a larger target */}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: as above */}
            <div
              ref={canvasBox}
              className="relative min-w-0 flex-1 cursor-default touch-pan-y"
              {...drag}
              onClick={(event) => {
                const row = rows[at(event.clientY)];
                if (row?.kind === "task") onSelect(row.task.taskId === selectedTask ? null : row.task.taskId);
                else if (row?.kind === "group") onToggle(row.groupId);
              }}
              onDoubleClick={(event) => {
                const row = rows[at(event.clientY)];
                if (row?.kind === "task") onOpen(row.task.taskId);
              }}
            >
              <canvas ref={canvas} aria-hidden className="absolute inset-0 size-full" />
            </div>
          </div>
        </div>
      </section>
    </div>
  );
}

/** Of the name of the selected task, which has the focus after a click. */
function isPressed(target: EventTarget): boolean {
  return target instanceof Element && target.getAttribute("aria-pressed") === "true";
}

/** The present of a run in ms after the origin, which goes on while it runs. */
function usePresent(timeline: Timeline, isRunning: boolean): number {
  const clock = useNow();
  return isRunning ? Math.max(timeline.now, clock - timeline.origin) : timeline.now;
}

function usualEnd({ origin, run, usual }: Timeline): number | null {
  return usual?.p50 && run.started !== null ? run.started - origin + usual.p50 : null;
}

function wholeOfRun(timeline: Timeline, present: number): Window {
  const { expectedEnd, origin, run, tasks } = timeline;
  const ended = run.ended === null ? present : run.ended - origin;
  const lastOf = tasks.flatMap(({ instances }) =>
    instances.map(({ intervals }) => intervals.at(-1)?.end ?? 0),
  );
  const end = lastOf.reduce((most, each) => Math.max(most, each), Math.max(ended, expectedEnd?.usual ?? 0));
  return wholeOf(0, end);
}

/** Moves the window with the pointer. */
function useDrag(view: Window, width: number, onMove: (view: Window) => void) {
  const start = useRef<{ readonly x: number; readonly view: Window } | null>(null);
  const hasMoved = useRef(false);
  return {
    onPointerDown: (event: React.PointerEvent) => {
      if (event.button === 0 && event.pointerType === "mouse") start.current = { x: event.clientX, view };
      hasMoved.current = false;
    },
    onPointerMove: (event: React.PointerEvent) => {
      if (start.current === null) return;
      if (event.buttons === 0) {
        start.current = null;
        return;
      }
      const moved = event.clientX - start.current.x;
      if (!hasMoved.current && Math.abs(moved) < 4) return;
      hasMoved.current = true;
      event.currentTarget.setPointerCapture(event.pointerId);
      const { from, to } = start.current.view;
      const ms = (-moved * (to - from)) / Math.max(1, width);
      onMove({ from: from + ms, to: to + ms });
    },
    onPointerUp: () => {
      start.current = null;
    },
    // A drag is no click.
    onClickCapture: (event: React.MouseEvent) => {
      if (!hasMoved.current) return;
      event.stopPropagation();
      hasMoved.current = false;
    },
  };
}
