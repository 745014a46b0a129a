/**
 * The runs of a DAG as columns and its tasks as rows. Cells are drawn on a canvas; names, the link of the current cell and the
 * tooltip are elements. The canvas has the size of what is visible and is drawn again while it scrolls.
 */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { usePreferences } from "../app/preferences.ts";
import { useKept } from "../state/kept.ts";
import { useCanvasPaint } from "../state/use-canvas-paint.ts";
import { serverNow } from "../time/clock.ts";
import { axisDates, barScale } from "./grid-axis.ts";
import { CELL_ID, type CellHandle, GridCell } from "./grid-cell.tsx";
import { GridHead, GridLabels } from "./grid-labels.tsx";
import {
  type Cell,
  cellAt,
  HEAD,
  labelsWidth,
  moved,
  ROW,
  revealed,
  type Scene,
  stepFor,
  visibleRows,
} from "./grid-layout.ts";
import { GridMarks, placeMarks } from "./grid-marks.tsx";
import { failuresOf, type GridModel } from "./grid-model.ts";
import { GridPainter, type Picture } from "./grid-painter.ts";
import type { GridRow } from "./grid-rows.ts";

/** Labels are made for whole chunks of rows, so that most scroll events make none. */
const CHUNK = 24;

export interface GridSelection {
  readonly runId?: string | undefined;
  readonly taskId?: string | undefined;
}

export function GridView({
  dagId,
  model,
  rows,
  selection,
  onSelect,
  onToggle,
  onOlder,
}: {
  readonly dagId: string;
  readonly model: GridModel;
  readonly rows: readonly GridRow[];
  readonly selection: GridSelection;
  readonly onSelect: (selection: GridSelection) => void;
  readonly onToggle: (group: string) => void;
  /** Undefined: there are no older runs, or they are being loaded. */
  readonly onOlder: (() => void) | undefined;
}) {
  const { zone } = usePreferences();
  const paint = useCanvasPaint();
  const scroller = useRef<HTMLDivElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const cells = useRef<HTMLCanvasElement>(null);
  const marks = useRef<HTMLDivElement>(null);
  const labels = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const cellHandle = useRef<CellHandle>(null);
  const painter = useRef<GridPainter>(null);
  const current = useRef<Cell | null>(null);
  const isByKeyboard = useRef(false);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [range, setRange] = useState<readonly [number, number]>([0, CHUNK * 2]);
  const labelled = labelsWidth(size.width);
  const width = Math.max(0, size.width - labelled);
  const step = stepFor(width, model.columns.length);
  const columns = model.columns;

  const sceneNow = useCallback((): Scene => {
    const { scrollLeft = 0, scrollTop = 0 } = scroller.current ?? {};
    return {
      width,
      height: size.height,
      scrollLeft,
      scrollTop,
      step,
      columns: columns.length,
      rows: rows.length,
    };
  }, [width, size.height, step, columns.length, rows.length]);

  const dates = useMemo(() => axisDates(columns, zone, step), [columns, zone, step]);
  const scale = useMemo(() => barScale(columns, serverNow()), [columns]);
  const failures = useKept(useMemo(() => failuresOf(model), [model]));
  const onTask = useCallback(
    (taskId: string) => onSelect({ runId: selection.runId, taskId }),
    [onSelect, selection.runId],
  );
  const selected = useMemo<Cell | null>(() => {
    const column = columns.findIndex(({ runId }) => runId === selection.runId);
    const row = rows.findIndex(({ id, kind }) => kind === "task" && id === selection.taskId);
    return column < 0 && row < 0 ? null : { column, row };
  }, [columns, rows, selection.runId, selection.taskId]);
  const picture = useMemo<Omit<Picture, "scene" | "now">>(
    () => ({ model, rows, paint, scale, dates }),
    [model, rows, paint, scale, dates],
  );

  const moveMarks = useCallback(() => {
    placeMarks(marks.current, sceneNow(), current.current, selected);
  }, [sceneNow, selected]);

  const show = useCallback(
    (cell: Cell | null, hasMoved = false) => {
      const before = current.current;
      if (!hasMoved && cell?.row === before?.row && cell?.column === before?.column) return;
      current.current = cell;
      moveMarks();
      if (cell !== null && cell.column >= 0) grid.current?.setAttribute("aria-activedescendant", CELL_ID);
      else grid.current?.removeAttribute("aria-activedescendant");
      cellHandle.current?.show(cell !== null && cell.column >= 0 ? cell : null, sceneNow());
      for (const hot of labels.current?.querySelectorAll("[data-hot]") ?? []) hot.removeAttribute("data-hot");
      if (cell !== null)
        labels.current?.querySelector(`[data-grid-row="${cell.row}"]`)?.setAttribute("data-hot", "");
    },
    [moveMarks, sceneNow],
  );

  const draw = useCallback(() => {
    if (cells.current === null) return;
    painter.current ??= new GridPainter(cells.current);
    const scene = sceneNow();
    if (scene.width <= 0) return;
    painter.current.draw({ ...picture, scene, now: serverNow() });
    moveMarks();
    if (labels.current) labels.current.style.transform = `translateY(${-scene.scrollTop}px)`;
    const [first, last] = visibleRows(scene);
    const chunks = [Math.floor(first / CHUNK) * CHUNK, Math.ceil(last / CHUNK) * CHUNK] as const;
    setRange((before) => (before[0] === chunks[0] && before[1] === chunks[1] ? before : chunks));
  }, [picture, sceneNow, moveMarks]);

  // The newest runs are at the right; what is visible stays where it is while older ones are added at the left.
  const known = useRef<{
    readonly newest: string;
    readonly count: number;
    readonly wasAtEnd: boolean;
  } | null>(null);
  const newest = columns.at(-1)?.runId ?? "";
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || width === 0) return;
    const before = known.current;
    if (before === null || (before.newest !== newest && before.wasAtEnd))
      element.scrollLeft = element.scrollWidth;
    else if (before.newest === newest) element.scrollLeft += (columns.length - before.count) * step;
    known.current = { newest, count: columns.length, wasAtEnd: isAtEnd(element) };
  }, [newest, columns.length, width, step]);

  useLayoutEffect(draw, [draw]);

  useLayoutEffect(() => {
    const element = scroller.current!;
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const isShort = width > 0 && columns.length * step <= width;
    if (isShort && columns.length >= 50) onOlder?.();
  }, [width, columns.length, step, onOlder]);

  const frame = useRef(0);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  const onScroll = () => {
    const element = scroller.current!;
    if (known.current) known.current = { ...known.current, wasAtEnd: isAtEnd(element) };
    // The pointer is above another cell now; the cell of the keyboard moves with the others.
    if (isByKeyboard.current) show(current.current, true);
    else show(null);
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(draw);
    if (element.scrollLeft < 300 && element.scrollWidth > element.clientWidth) onOlder?.();
  };

  const open = useCallback(
    ({ column, row }: Cell) => {
      const { runId } = columns[column] ?? {};
      const at = row < 0 ? undefined : rows[row];
      if (at?.kind === "group") onToggle(at.id);
      else onSelect({ runId, taskId: at?.id });
    },
    [columns, rows, onSelect, onToggle],
  );

  const onKeyDown = (event: React.KeyboardEvent) => {
    const element = scroller.current!;
    const scene = sceneNow();
    const at = current.current ?? selected ?? { row: -1, column: columns.length - 1 };
    const from = { row: at.row, column: at.column < 0 ? columns.length - 1 : at.column };
    if ((event.key === "Enter" || event.key === " ") && current.current !== null) {
      event.preventDefault();
      open(from);
      return;
    }
    const to = event.metaKey || event.altKey || event.ctrlKey ? null : moved(event.key, from, scene, 10);
    if (to === null) return;
    event.preventDefault();
    element.scrollLeft = revealed(scene.scrollLeft, width, to.column * step, step);
    if (to.row >= 0) element.scrollTop = revealed(scene.scrollTop, size.height - HEAD, to.row * ROW, ROW);
    isByKeyboard.current = true;
    draw();
    show(to, true);
    if (event.shiftKey) open(to);
  };

  return (
    <div ref={scroller} onScroll={onScroll} className="relative h-full overflow-auto">
      <div style={{ width: labelled + columns.length * step, height: HEAD + rows.length * ROW + 8 }}>
        <div
          ref={layer}
          className="sticky top-0 left-0 overflow-hidden"
          style={size}
          onPointerMove={(event) => {
            isByKeyboard.current = false;
            const box = event.currentTarget.getBoundingClientRect();
            const [x, y] = [event.clientX - box.left - labelled, event.clientY - box.top];
            const scene = sceneNow();
            const row = Math.floor((y - HEAD + scene.scrollTop) / ROW);
            show(x < 0 ? (y > HEAD && row < rows.length ? { row, column: -1 } : null) : cellAt(scene, x, y));
          }}
          onPointerLeave={() => {
            if (!isByKeyboard.current) show(null);
          }}
        >
          <GridHead
            scale={scale}
            tasks={model.tasks.length}
            hasFailures={failures.some((each) => each > 0)}
            width={labelled}
          />
          <GridLabels
            rows={rows}
            first={range[0]}
            last={range[1]}
            failures={failures}
            selectedTask={selection.taskId}
            inner={labels}
            width={labelled}
            onTask={onTask}
            onToggle={onToggle}
          />
          {/* biome-ignore lint/a11y/useSemanticElements: a canvas has no table cells; the current one is an element */}
          <div
            ref={grid}
            role="grid"
            tabIndex={0}
            aria-label={`States of ${model.tasks.length} tasks in ${columns.length} runs, the newest at the right`}
            aria-rowcount={rows.length + 1}
            aria-colcount={columns.length}
            onKeyDown={onKeyDown}
            onBlur={() => show(null)}
            className="absolute top-0 bottom-0"
            style={{ left: labelled, width }}
          >
            <GridMarks inner={marks} />
            <canvas ref={cells} aria-hidden className="absolute inset-0" />
            <GridCell handle={cellHandle} dagId={dagId} model={model} rows={rows} onOpen={open} />
          </div>
        </div>
      </div>
    </div>
  );
}

function isAtEnd({ clientWidth, scrollLeft, scrollWidth }: HTMLElement): boolean {
  return scrollLeft + clientWidth >= scrollWidth - 12;
}
