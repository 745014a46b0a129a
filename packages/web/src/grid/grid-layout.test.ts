import { expect, it } from "vitest";
import {
  cellAt,
  HEAD,
  moved,
  ROW,
  revealed,
  type Scene,
  stepFor,
  visibleColumns,
  visibleRows,
} from "./grid-layout.ts";

const scene: Scene = {
  width: 100,
  height: HEAD + 48,
  scrollLeft: 50,
  scrollTop: 12,
  step: 10,
  columns: 30,
  rows: 9,
};

it("finds the cell at a point, and the run in the head", () => {
  expect(cellAt(scene, 3, HEAD + 13)).toEqual({ row: 1, column: 5 });
  expect(cellAt(scene, 0, 10)).toEqual({ row: -1, column: 5 });
  expect(cellAt(scene, -1, HEAD)).toBeNull();
  expect(cellAt({ ...scene, columns: 6 }, 20, HEAD)).toBeNull();
  expect(cellAt({ ...scene, rows: 1 }, 0, HEAD + ROW * 2)).toBeNull();
});

it("draws only what is visible, and all of it", () => {
  expect(visibleColumns(scene)).toEqual([5, 15]);
  expect(visibleRows(scene)).toEqual([0, 3]);
});

it("moves by keys and stays within the grid", () => {
  expect(moved("ArrowUp", { row: 0, column: 4 }, scene, 5)).toEqual({ row: -1, column: 4 });
  expect(moved("ArrowUp", { row: -1, column: 4 }, scene, 5)).toEqual({ row: -1, column: 4 });
  expect(moved("PageDown", { row: 6, column: 4 }, scene, 5)).toEqual({ row: 8, column: 4 });
  expect(moved("End", { row: 6, column: 4 }, scene, 5)).toEqual({ row: 6, column: 29 });
  expect(moved("x", { row: 6, column: 4 }, scene, 5)).toBeNull();
});

it("scrolls as little as needed", () => {
  expect(revealed(100, 50, 90, 10)).toBe(90);
  expect(revealed(100, 50, 145, 10)).toBe(105);
  expect(revealed(100, 50, 120, 10)).toBe(100);
});

it("keeps the width of columns while older runs are loaded", () => {
  expect(stepFor(1_100, 100)).toBe(stepFor(1_100, 300));
  expect(stepFor(1_100, 4)).toBe(22);
});
