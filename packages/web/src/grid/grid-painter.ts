/** Draws the runs and cells of the grid. */
import type { CanvasPaint } from "../state/canvas-paint.ts";
import {
  BARS,
  HEAD,
  KIND,
  MARK,
  ROW,
  type Scene,
  visibleColumns,
  visibleRows,
  xOf,
  yOf,
} from "./grid-layout.ts";
import { type GridColumn, type GridModel, segmentsOf, tookOf, worstOf } from "./grid-model.ts";
import type { GridRow } from "./grid-rows.ts";
import { fillOf, Sprites } from "./sprites.ts";

export interface Picture {
  readonly model: GridModel;
  readonly rows: readonly GridRow[];
  readonly scene: Scene;
  readonly paint: CanvasPaint;
  readonly scale: BarScale;
  /** Text below a column; undefined for most. */
  readonly dates: ReadonlyMap<number, string>;
  readonly now: number;
}

/** Bars end at `most`; a longer run is cut off. */
export interface BarScale {
  readonly most: number;
  readonly usual: number | null;
}

export class GridPainter {
  readonly #canvas: HTMLCanvasElement;
  #sprites: { readonly key: readonly unknown[]; readonly of: Sprites } | null = null;
  /** What the canvas shows. */
  #drawn: { readonly picture: Picture; readonly ratio: number } | null = null;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    canvas.addEventListener("contextrestored", () => {
      const lost = this.#drawn;
      this.#drawn = null;
      if (lost !== null) this.draw(lost.picture);
    });
  }

  /** Draws the head, and of the cells only the columns that differ from those on the canvas. */
  draw(picture: Picture): void {
    const context = prepared(this.#canvas, picture.scene);
    const before = this.#drawn?.ratio === ratio() ? this.#drawn.picture : null;
    this.#drawn = { picture, ratio: ratio() };
    this.#drawHead(context, picture);
    const [first, last] = changedColumns(before, picture);
    if (first < last) this.#drawCells(context, picture, first, last);
  }

  #drawHead(context: CanvasRenderingContext2D, picture: Picture): void {
    const [first, last] = visibleColumns(picture.scene);
    clipped(context, 0, 0, picture.scene.width, HEAD, () => {
      this.#drawScale(context, picture);
      for (let column = first; column < last; column += 1) this.#drawRun(context, picture, column);
      this.#drawDates(context, picture, first, last);
      for (let column = first; column < last; column += 1) this.#drawVersion(context, picture, column);
    });
  }

  /** Within whole pixels, so that the same is drawn for a part of the columns as for all of them. */
  #drawCells(context: CanvasRenderingContext2D, picture: Picture, first: number, last: number): void {
    const { scene } = picture;
    // With the gaps at both sides.
    const [left, right] = [Math.round(xOf(scene, first)) - 2, Math.round(xOf(scene, last))];
    clipped(context, left, HEAD, right, scene.height, () => {
      const [from, to] = [Math.max(0, first - 1), Math.min(scene.columns, last + 1)];
      for (let column = from; column < to; column += 1) this.#drawColumn(context, picture, column);
      for (let column = from; column < to; column += 1) this.#drawVersionLine(context, picture, column);
    });
  }

  #drawScale(context: CanvasRenderingContext2D, { paint, scale, scene }: Picture): void {
    const line = (share: number, color: string) => {
      const y = Math.round(MARK + BARS * (1 - share)) + 0.5;
      context.strokeStyle = color;
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(Math.min(scene.width, scene.columns * scene.step - scene.scrollLeft), y);
      context.stroke();
    };
    context.lineWidth = 1;
    for (const share of [0, 0.5, 1]) line(share, paint.color("--line"));
    if (scale.usual === null) return;
    context.setLineDash([3, 3]);
    line(scale.usual / scale.most, paint.color("--faint"));
    context.setLineDash([]);
  }

  /** The bar of a run, its kind, and its note. */
  #drawRun(
    context: CanvasRenderingContext2D,
    { model, now, paint, scale, scene }: Picture,
    index: number,
  ): void {
    const column = model.columns[index]!;
    const x = xOf(scene, index);
    const width = scene.step - 2;
    const share = Math.min(1, (tookOf(column, now) ?? 0) / scale.most);
    const least = column.state === "failed" ? 0.3 : 0.04;
    const tall = Math.round(BARS * Math.max(least, share));
    context.fillStyle = fillOf(paint, column.state);
    context.beginPath();
    context.roundRect(x, MARK + BARS - tall, width, tall, [2, 2, 0, 0]);
    context.fill();
    drawKind(context, column, x + width / 2, MARK + BARS + KIND / 2 + 1, paint.color("--muted"));
    if (!column.hasNote) return;
    context.fillStyle = paint.color("--accent");
    context.beginPath();
    context.roundRect(x, 6, 9, 7, 1.5);
    context.moveTo(x + 2, 12);
    context.lineTo(x + 2, 16);
    context.lineTo(x + 6, 12);
    context.fill();
  }

  #drawDates(
    context: CanvasRenderingContext2D,
    { dates, paint, scene }: Picture,
    first: number,
    last: number,
  ): void {
    context.font = `12px ${FONT}`;
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.fillStyle = paint.color("--faint");
    for (const [index, text] of dates) {
      if (index < first || index >= last) continue;
      const half = context.measureText(text).width / 2;
      const middle = xOf(scene, index) + scene.step / 2 - 1;
      context.fillText(text, Math.min(scene.width - half, Math.max(half, middle)), HEAD - 10);
    }
  }

  #drawColumn(
    context: CanvasRenderingContext2D,
    { model, paint, rows, scene }: Picture,
    index: number,
  ): void {
    const column = model.columns[index]!;
    const sprites = this.#spritesFor(paint, scene.step);
    const x = Math.round(xOf(scene, index));
    const [first, last] = visibleRows(scene);
    for (let at = first; at < last; at += 1) {
      const sprite = spriteOf(sprites, model, column, rows[at]!);
      if (sprite !== null) context.drawImage(sprite, x, yOf(scene, at), sprite.width / ratio(), ROW);
    }
  }

  /** The name of a version before its first run. */
  #drawVersion(context: CanvasRenderingContext2D, picture: Picture, index: number): void {
    const { model, paint, scene } = picture;
    if (!isNewVersion(model, index)) return;
    const { version } = model.columns[index]!;
    const x = versionX(scene, index);
    drawDashes(context, paint, x, MARK - 2, MARK + BARS + KIND);
    context.font = `500 11px ${FONT}`;
    const text = `v${version}`;
    const wide = Math.ceil(context.measureText(text).width) + 8;
    context.fillStyle = paint.color("--bg");
    context.strokeStyle = paint.color("--line-strong");
    context.beginPath();
    context.roundRect(x - wide, 2.5, wide, 15, 3);
    context.fill();
    context.stroke();
    context.fillStyle = paint.color("--muted");
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x - wide / 2, 10.5);
  }

  #drawVersionLine(context: CanvasRenderingContext2D, { model, paint, scene }: Picture, index: number): void {
    if (isNewVersion(model, index)) drawDashes(context, paint, versionX(scene, index), HEAD, scene.height);
  }

  #spritesFor(paint: CanvasPaint, step: number): Sprites {
    const key = [paint, step, ratio()];
    if (this.#sprites === null || this.#sprites.key.some((each, index) => each !== key[index]))
      this.#sprites = { key, of: new Sprites(paint, step, ratio()) };
    return this.#sprites.of;
  }
}

const FONT = '"Inter Variable", system-ui, sans-serif';

function ratio(): number {
  return Math.max(1, globalThis.devicePixelRatio || 1);
}

/** A canvas that gets another size is empty. */
function prepared(canvas: HTMLCanvasElement, { height, width }: Scene): CanvasRenderingContext2D {
  const context = canvas.getContext("2d")!;
  const scale = ratio();
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/** Clears a rectangle, whose sides are moved to whole pixels, and draws within it. */
function clipped(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  right: number,
  bottom: number,
  draw: () => void,
): void {
  const whole = (length: number) => Math.ceil(length * ratio()) / ratio();
  const [x, y] = [whole(left), whole(top)];
  const [width, height] = [whole(right) - x, whole(bottom) - y];
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.clearRect(x, y, width, height);
  draw();
  context.restore();
}

/** The first of the visible columns whose cells are not as before, and one past the last; all of them after any other change. */
function changedColumns(before: Picture | null, now: Picture): readonly [number, number] {
  let [first, last] = visibleColumns(now.scene);
  if (before === null || !hasSameCells(before, now)) return [first, last];
  const isSame = (index: number) => before.model.columns[index] === now.model.columns[index];
  while (first < last && isSame(first)) first += 1;
  while (first < last && isSame(last - 1)) last -= 1;
  return [first, last];
}

/** Whether all but the columns is the same. */
function hasSameCells(before: Picture, { model, paint, rows, scene }: Picture): boolean {
  return (
    before.rows === rows &&
    before.paint === paint &&
    before.model.legend === model.legend &&
    Object.entries(scene).every(([key, value]) => before.scene[key as keyof Scene] === value)
  );
}

function isNewVersion({ columns }: GridModel, index: number): boolean {
  return index > 0 && columns[index]!.version !== columns[index - 1]!.version;
}

/** In the gap before the column. */
function versionX(scene: Scene, index: number): number {
  return Math.round(xOf(scene, index)) - 0.5 - 1;
}

function drawDashes(
  context: CanvasRenderingContext2D,
  paint: CanvasPaint,
  x: number,
  from: number,
  to: number,
): void {
  context.strokeStyle = paint.color("--faint");
  context.lineWidth = 1;
  context.setLineDash([2, 2]);
  context.beginPath();
  context.moveTo(x, from);
  context.lineTo(x, to);
  context.stroke();
  context.setLineDash([]);
}

function spriteOf(
  sprites: Sprites,
  model: GridModel,
  column: GridColumn,
  row: GridRow,
): HTMLCanvasElement | null {
  if (row.kind === "group") {
    const byte = worstOf(model, column, row.places);
    if (byte === 0) return null;
    const state = model.legend[byte]!;
    return row.isOpen ? sprites.line(state) : sprites.cell(state, false);
  }
  const byte = column.states[row.place] ?? 0;
  if (byte === 0) return null;
  const counts = column.mapped.get(row.place);
  if (counts !== undefined && counts.length > 0)
    return sprites.segments(segmentsOf(model, counts, 4).map((each) => model.legend[each]!));
  return sprites.cell(model.legend[byte]!, (column.tries?.[row.place] ?? 0) > 1);
}

/** A triangle for a manual run, a diamond for one of a backfill; none for others. */
function drawKind(
  context: CanvasRenderingContext2D,
  { runType }: GridColumn,
  x: number,
  y: number,
  color: string,
): void {
  if (runType !== "manual" && runType !== "backfill") return;
  context.fillStyle = color;
  context.beginPath();
  if (runType === "manual") {
    context.moveTo(x - 2.5, y - 3);
    context.lineTo(x + 3, y);
    context.lineTo(x - 2.5, y + 3);
  } else {
    context.moveTo(x, y - 3);
    context.lineTo(x + 3, y);
    context.lineTo(x, y + 3);
    context.lineTo(x - 3, y);
  }
  context.fill();
}
