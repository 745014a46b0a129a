/** The rows and columns of the pointer and of the selection, below the cells: elements that move, so that nothing is drawn again. */
import type { Ref } from "react";
import { type Cell, HEAD, MARK, ROW, type Scene, xOf, yOf } from "./grid-layout.ts";

export function GridMarks({ inner }: { readonly inner: Ref<HTMLDivElement> }) {
  const mark = "absolute top-0 left-0 will-change-transform";
  return (
    <div ref={inner} aria-hidden className="absolute inset-0 overflow-hidden">
      <div hidden className={`${mark} w-full bg-accent-soft`} />
      <div hidden className={`${mark} border-x border-accent bg-accent-soft`} />
      <div hidden className={`${mark} w-full bg-hover`} />
      <div hidden className={`${mark} bg-hover`} />
    </div>
  );
}

/** @param hovered The cell below the pointer or of the keyboard; `selected` is a column, and a row or -1. */
export function placeMarks(
  layer: HTMLDivElement | null,
  scene: Scene,
  hovered: Cell | null,
  selected: Cell | null,
): void {
  if (layer === null) return;
  const [selectedRow, selectedColumn, hoveredRow, hoveredColumn] = layer.children as Iterable<HTMLElement>;
  placeRow(selectedRow!, scene, selected);
  placeColumn(selectedColumn!, scene, selected);
  placeRow(hoveredRow!, scene, hovered);
  placeColumn(hoveredColumn!, scene, hovered);
}

function placeRow(element: HTMLElement, scene: Scene, cell: Cell | null): void {
  const y = cell === null || cell.row < 0 ? null : yOf(scene, cell.row);
  element.hidden = y === null || y <= HEAD - ROW;
  if (element.hidden) return;
  element.style.height = `${ROW}px`;
  element.style.transform = `translateY(${y}px)`;
}

function placeColumn(element: HTMLElement, scene: Scene, cell: Cell | null): void {
  element.hidden = cell === null || cell.column < 0;
  if (cell === null || element.hidden) return;
  element.style.width = `${scene.step}px`;
  element.style.height = `${scene.height - MARK}px`;
  element.style.transform = `translate(${xOf(scene, cell.column) - 1}px, ${MARK}px)`;
}
