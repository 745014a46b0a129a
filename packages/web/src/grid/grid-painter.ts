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

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
  }

  draw(picture: Picture): void {
    const { scene } = picture;
    const context = prepared(this.#canvas, scene);
    const [first, last] = visibleColumns(scene);
    this.#drawScale(context, picture);
    for (let column = first; column < last; column += 1) this.#drawHead(context, picture, column);
    this.#drawDates(context, picture, first, last);
    context.save();
    context.beginPath();
    context.rect(0, HEAD, scene.width, scene.height - HEAD);
    context.clip();
    for (let column = first; column < last; column += 1) this.#drawColumn(context, picture, column);
    context.restore();
    for (let column = Math.max(1, first); column < last; column += 1)
      this.#drawVersion(context, picture, column);
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
  #drawHead(
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

  /** A line before the first run of a version. */
  #drawVersion(context: CanvasRenderingContext2D, { model, paint, scene }: Picture, index: number): void {
    const { version } = model.columns[index]!;
    if (model.columns[index - 1]!.version === version) return;
    const x = Math.round(xOf(scene, index)) - 0.5 - 1;
    context.strokeStyle = paint.color("--faint");
    context.lineWidth = 1;
    context.setLineDash([2, 2]);
    context.beginPath();
    context.moveTo(x, MARK - 2);
    context.lineTo(x, MARK + BARS + KIND);
    context.moveTo(x, HEAD);
    context.lineTo(x, scene.height);
    context.stroke();
    context.setLineDash([]);
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

/** Sets the size of the canvas, or clears it. */
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
  context.clearRect(0, 0, width, height);
  return context;
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
