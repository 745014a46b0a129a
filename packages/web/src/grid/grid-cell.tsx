/** The cell below the pointer or of the keyboard: a real link to its page, its text for screen readers, and a tooltip. */
import { type Ref, useImperativeHandle, useState } from "react";
import { BASE } from "../api/client.ts";
import { usePreferences } from "../app/preferences.ts";
import { StateGlyph } from "../state/glyph.tsx";
import { lookOf } from "../state/states.ts";
import { serverNow } from "../time/clock.ts";
import { count, duration, shortDate } from "../time/format.ts";
import { dateOf } from "./grid-axis.ts";
import { type Cell, HEAD, MARK, ROW, type Scene, xOf, yOf } from "./grid-layout.ts";
import { type GridColumn, type GridModel, tookOf, worstOf } from "./grid-model.ts";
import type { GridRow } from "./grid-rows.ts";

export interface CellHandle {
  show(cell: Cell | null, scene: Scene): void;
}

export const CELL_ID = "grid-cell";

export function GridCell({
  handle,
  dagId,
  model,
  rows,
  onOpen,
}: {
  readonly handle: Ref<CellHandle>;
  readonly dagId: string;
  readonly model: GridModel;
  readonly rows: readonly GridRow[];
  readonly onOpen: (cell: Cell) => void;
}) {
  const [shown, setShown] = useState<{ readonly cell: Cell; readonly scene: Scene } | null>(null);
  const { zone } = usePreferences();
  useImperativeHandle(handle, () => ({
    show: (cell, scene) => setShown(cell === null ? null : { cell, scene }),
  }));
  const column = shown && model.columns[shown.cell.column];
  const row = shown && shown.cell.row >= 0 ? rows[shown.cell.row] : undefined;
  if (shown === null || column === null || column === undefined) return null;
  const { cell, scene } = shown;
  const facts = row === undefined ? runFacts(column) : rowFacts(model, column, row);
  const date = shortDate(dateOf(column), zone);
  const left = xOf(scene, cell.column);
  const top = yOf(scene, cell.row);
  const toLeft = left > scene.width / 2;
  const path = `${BASE}dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(column.runId)}`;
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: the only row of a grid that is drawn on a canvas */}
      <div role="row" tabIndex={-1} aria-rowindex={cell.row + 2}>
        {/* biome-ignore lint/a11y/useSemanticElements: see above */}
        <div role="gridcell" tabIndex={-1} id={CELL_ID} aria-colindex={cell.column + 1}>
          <a
            href={row?.kind === "task" ? `${path}/tasks/${encodeURIComponent(row.id)}` : path}
            tabIndex={-1}
            onClick={(event) => {
              if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
              event.preventDefault();
              onOpen(cell);
            }}
            style={
              row === undefined
                ? { left: left - 1, top: MARK, width: scene.step, height: HEAD - MARK }
                : { left: left - 2, top: top + 2, width: scene.step + 2, height: ROW - 4 }
            }
            className="absolute rounded-[3px] border-[1.5px] border-text"
          >
            <span className="sr-only">
              {[row?.id ?? "Run", date, ...facts.map(({ text }) => text)].join(", ")}
            </span>
          </a>
        </div>
      </div>
      <div
        aria-hidden
        className="pointer-events-none absolute z-10 w-max max-w-80 rounded-md border border-line bg-surface px-2.5 py-2 shadow-lg"
        style={{
          ...(toLeft ? { right: scene.width - left + 8 } : { left: left + scene.step + 8 }),
          ...(top > scene.height - 120
            ? { bottom: scene.height - top + 4 }
            : { top: top + (row ? ROW : 24) }),
        }}
      >
        <p className="flex justify-between gap-4">
          <span className="min-w-0 truncate font-medium">
            {row?.id ?? column.runType.replaceAll("_", " ")}
          </span>
          <span className="shrink-0 text-muted">{date}</span>
        </p>
        {facts.map(({ state, text }) => (
          <p key={text} className="flex items-center gap-1.5">
            {state !== undefined && <StateGlyph state={state} size={14} />}
            {text}
          </p>
        ))}
      </div>
    </>
  );
}

interface CellFact {
  readonly state?: string;
  readonly text: string;
}

function runFacts(column: GridColumn): CellFact[] {
  const took = tookOf(column, serverNow());
  return [
    { state: column.state, text: lookOf(column.state).label + (took === null ? "" : `, ${duration(took)}`) },
    { text: `Version ${column.version}${column.hasNote ? ", with a note" : ""}` },
  ];
}

function rowFacts(model: GridModel, column: GridColumn, row: GridRow): CellFact[] {
  const fact = (byte: number, suffix = ""): CellFact =>
    byte === 0
      ? { text: "Not in this run" }
      : { state: model.legend[byte]!, text: lookOf(model.legend[byte]).label + suffix };
  if (row.kind === "group")
    return [fact(worstOf(model, column, row.places), `, worst of ${row.places.length} tasks`)];
  const counts = column.mapped.get(row.place);
  if (counts !== undefined && counts.length > 0)
    return counts.map(([byte, instances]) => ({
      state: model.legend[byte]!,
      text: `${count(instances)} ${lookOf(model.legend[byte]).label.toLowerCase()}`,
    }));
  const tries = column.tries?.[row.place] ?? 0;
  return [fact(column.states[row.place] ?? 0, tries > 1 ? `, try ${tries}` : "")];
}
