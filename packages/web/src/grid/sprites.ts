/** Cells drawn once per state, and copied to the grid: thousands of them take a few milliseconds. */

import type { CanvasPaint } from "../state/canvas-paint.ts";
import { INK, lookOf } from "../state/states.ts";
import { ROW } from "./grid-layout.ts";

/** Of a cell, in its row. */
const CELL_TOP = 4;
const CELL_HEIGHT = 16;
const SEGMENT = CELL_HEIGHT / 4;

export class Sprites {
  readonly #paint: CanvasPaint;
  readonly #step: number;
  readonly #ratio: number;
  readonly #sprites = new Map<string, HTMLCanvasElement>();

  constructor(paint: CanvasPaint, step: number, ratio: number) {
    this.#paint = paint;
    this.#step = step;
    this.#ratio = ratio;
  }

  /** The cell of a task: fill, glyph, and a corner if it was retried. */
  cell(state: string, isRetried: boolean): HTMLCanvasElement {
    return this.#sprite(`${state}${isRetried ? "+" : ""}`, (context) =>
      this.#drawCell(context, state, isRetried),
    );
  }

  /** The cell of a mapped task, in four segments. */
  segments(states: readonly string[]): HTMLCanvasElement {
    return this.#sprite(`map ${states.join(" ")}`, (context) => {
      for (const [index, state] of states.entries()) {
        const top = CELL_TOP + index * SEGMENT;
        const { isOutlined = false } = lookOf(state);
        if (isOutlined) {
          context.strokeStyle = this.#paint.fill(state);
          context.strokeRect(0.5, top + 0.5, this.#width - 1, SEGMENT - 2);
        } else {
          context.fillStyle = fillOf(this.#paint, state);
          context.fillRect(0, top, this.#width, SEGMENT - 1);
        }
      }
    });
  }

  /** The line of an open group. */
  line(state: string): HTMLCanvasElement {
    return this.#sprite(`line ${state}`, (context) => {
      context.fillStyle = fillOf(this.#paint, state);
      context.beginPath();
      context.roundRect(0, ROW / 2 - 2, this.#width, 4, 1);
      context.fill();
    });
  }

  get #width(): number {
    return this.#step - 2;
  }

  #sprite(key: string, draw: (context: CanvasRenderingContext2D) => void): HTMLCanvasElement {
    const known = this.#sprites.get(key);
    if (known !== undefined) return known;
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(this.#width * this.#ratio);
    canvas.height = ROW * this.#ratio;
    const context = canvas.getContext("2d")!;
    context.scale(this.#ratio, this.#ratio);
    draw(context);
    this.#sprites.set(key, canvas);
    return canvas;
  }

  #drawCell(context: CanvasRenderingContext2D, state: string, isRetried: boolean): void {
    const width = this.#width;
    const { glyph, ink, isOutlined = false } = lookOf(state);
    const color = this.#paint.fill(state === "scheduled" ? "pending" : state);
    context.lineWidth = 1;
    context.beginPath();
    if (state === "removed") {
      context.strokeStyle = color;
      context.moveTo(width / 2 - 2, ROW / 2);
      context.lineTo(width / 2 + 2, ROW / 2);
      context.stroke();
      return;
    }
    if (isOutlined || state === "scheduled") {
      context.strokeStyle = color;
      context.roundRect(0.5, CELL_TOP + 0.5, width - 1, CELL_HEIGHT - 1, 2);
      context.stroke();
      this.#drawGlyph(context, glyph, color);
      return;
    }
    context.fillStyle = fillOf(this.#paint, state);
    context.roundRect(0, CELL_TOP, width, CELL_HEIGHT, 2);
    context.fill();
    if (state !== "success")
      this.#drawGlyph(context, glyph, state === "skipped" ? this.#paint.color("--text") : INK[ink]);
    if (!isRetried) return;
    context.fillStyle = this.#paint.color("--s-retry");
    context.beginPath();
    context.moveTo(width - 6, CELL_TOP);
    context.lineTo(width, CELL_TOP);
    context.lineTo(width, CELL_TOP + 6);
    context.fill();
  }

  #drawGlyph(
    context: CanvasRenderingContext2D,
    name: Parameters<CanvasPaint["glyph"]>[0],
    color: string,
  ): void {
    const scale = this.#step >= 16 ? 0.8 : 0.62;
    context.save();
    context.translate(this.#width / 2 - 8 * scale, ROW / 2 - 8 * scale);
    context.scale(scale, scale);
    context.lineWidth = 2;
    context.lineCap = context.lineJoin = "round";
    context.strokeStyle = context.fillStyle = color;
    const path = this.#paint.glyph(name);
    if (name === "play") context.fill(path);
    else context.stroke(path);
    context.restore();
  }
}

/** Success and skipped are softened, so that failures stand out. */
export function fillOf(paint: CanvasPaint, state: string): string {
  if (state === "success") return paint.color("--s-success-soft");
  if (state === "skipped") return paint.color("--s-skipped-soft");
  return paint.fill(state);
}
