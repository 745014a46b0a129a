/** Draws the visible rows of a timeline on a canvas. */
import type { CanvasPaint } from "../state/canvas-paint.ts";
import { count, duration } from "../time/format.ts";
import type { Window } from "./time-scale.ts";
import {
  type Expected,
  type Interval,
  lookOfInterval,
  type PathStep,
  type Timeline,
  type TimelineInstance,
} from "./timeline-data.ts";
import type { Row, TaskRow } from "./timeline-rows.ts";

export interface Scene {
  readonly timeline: Timeline;
  readonly rows: readonly Row[];
  readonly first: number;
  readonly last: number;
  readonly scrollTop: number;
  readonly view: Window;
  readonly width: number;
  readonly height: number;
  /** In ms after the origin. */
  readonly now: number;
  readonly isRunning: boolean;
  readonly ticks: readonly number[];
  readonly showPath: boolean;
  readonly hovered: number | null;
  readonly selected: number | null;
}

const BAR = 12;

export function drawTimeline(context: CanvasRenderingContext2D, scene: Scene, paint: CanvasPaint): void {
  new Painter(context, scene, paint).draw();
}

class Painter {
  readonly #context: CanvasRenderingContext2D;
  readonly #scene: Scene;
  readonly #paint: CanvasPaint;
  readonly #perMs: number;
  #hatch: CanvasPattern | null = null;

  constructor(context: CanvasRenderingContext2D, scene: Scene, paint: CanvasPaint) {
    this.#context = context;
    this.#scene = scene;
    this.#paint = paint;
    this.#perMs = scene.width / (scene.view.to - scene.view.from);
  }

  draw(): void {
    const { first, height, hovered, last, rows, selected, timeline, width } = this.#scene;
    const context = this.#context;
    context.clearRect(0, 0, width, height);
    for (let at = first; at < last; at += 1) {
      const row = rows[at]!;
      const y = this.#y(row);
      if (at === selected || at === hovered) {
        context.fillStyle = this.#paint.color(at === selected ? "--accent-soft" : "--hover");
        context.fillRect(0, y, width, row.height);
      }
      if (row.kind === "group" || row.depth === 0) this.#line(0, y + 0.5, width, y + 0.5, "--line");
    }
    for (const tick of this.#scene.ticks) this.#line(this.#x(tick), 0, this.#x(tick), height, "--line");
    this.#moments();
    for (let at = first; at < last; at += 1) {
      const row = rows[at]!;
      if (row.kind === "group") this.#group(row.span, this.#y(row) + row.height / 2);
      else this.#task(row);
    }
    if (this.#scene.showPath) this.#path(timeline.path);
  }

  #x(ms: number): number {
    return (ms - this.#scene.view.from) * this.#perMs;
  }

  #y({ top }: Row): number {
    return top - this.#scene.scrollTop;
  }

  #line(x: number, y: number, toX: number, toY: number, color: string, width = 1): void {
    const context = this.#context;
    context.strokeStyle = this.#paint.color(color);
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
  }

  #dashed(pattern: readonly number[], draw: () => void): void {
    this.#context.setLineDash([...pattern]);
    draw();
    this.#context.setLineDash([]);
  }

  /** Now, and when the run usually ends. */
  #moments(): void {
    const { height, isRunning, now, timeline } = this.#scene;
    const { origin, run, usual } = timeline;
    if (usual?.p50 && run.started !== null) {
      const x = Math.round(this.#x(run.started - origin + usual.p50)) + 0.5;
      this.#dashed([2, 3], () => this.#line(x, 0, x, height, "--muted"));
    }
    if (isRunning) this.#line(this.#x(now), 0, this.#x(now), height, "--text");
  }

  #group(span: { readonly start: number; readonly end: number } | null, y: number): void {
    if (span === null) return;
    const [from, to] = [this.#x(span.start), this.#x(span.end)];
    this.#line(from, y, to, y, "--line-strong");
    this.#line(from, y - 3, from, y + 3, "--line-strong");
    this.#line(to, y - 3, to, y + 3, "--line-strong");
  }

  #task(row: TaskRow): void {
    const { timeline } = this.#scene;
    const { instances } = row.task;
    const y = this.#y(row);
    const expected = timeline.expected.get(row.position);
    if (expected !== undefined) this.#expected(expected, y + row.height / 2);
    if (instances.length > 1)
      this.#map(instances, { top: y + 4, height: row.height - 8, total: row.task.map?.instances ?? 0 });
    else for (const instance of instances) this.#instance(instance, y + row.height / 2);
    const note = noteOf(row);
    if (note === "" || row.span === null) return;
    this.#context.font = '12px "Inter Variable", sans-serif';
    this.#context.fillStyle = this.#paint.color("--muted");
    this.#context.textBaseline = "middle";
    const room =
      expected === undefined ? 8 : Math.max(8, this.#x(expected.lateEnd) - this.#x(row.span.end) + 8);
    const right = this.#x(this.#endOf(row.span.end)) + room;
    this.#note(note, { left: this.#x(row.span.start), right, y: y + row.height / 2 });
  }

  /** Right of a bar; left of it if there is no room, or over the end of a long one. */
  #note(note: string, { left, right, y }: { left: number; right: number; y: number }): void {
    const context = this.#context;
    const width = context.measureText(note).width;
    const most = this.#scene.width - width - 8;
    const isOver = right > most && left - width - 8 < 4;
    // A short bar is worth more than its note.
    if (isOver && right - left < 3 * width) return;
    const x = right <= most ? right : isOver ? most : left - width - 8;
    if (isOver) {
      context.fillStyle = this.#paint.color("--surface");
      context.fillRect(x - 4, y - 9, width + 8, 18);
      context.fillStyle = this.#paint.color("--muted");
    }
    context.fillText(note, x, y + 0.5);
  }

  #endOf(end: number): number {
    return this.#scene.isRunning ? Math.min(end, this.#scene.now) : end;
  }

  #until(interval: Interval): number {
    return interval.next === null && this.#scene.isRunning
      ? Math.max(interval.end, this.#scene.now)
      : interval.end;
  }

  #instance({ intervals }: TimelineInstance, y: number): void {
    for (const interval of intervals) this.#interval(interval, y);
  }

  #interval(interval: Interval, y: number): void {
    const { width } = this.#scene;
    const from = Math.max(-4, this.#x(interval.start));
    const to = Math.min(width + 4, this.#x(this.#until(interval)));
    if (to < -2 || from > width + 2) return;
    const look = lookOfInterval(interval);
    const context = this.#context;
    const long = Math.max(to - from, interval.kind === "running" ? (look === "failed" ? 3 : 2) : 1);
    if (interval.kind === "scheduled") this.#line(from, y, from + long, y, "--s-scheduled", 2);
    else if (interval.kind === "up_for_retry" || interval.kind === "up_for_reschedule")
      this.#dashed([2, 2], () => this.#line(from, y, from + long, y, "--s-retry", 2));
    else if (interval.kind === "queued") this.#bar(from, y, long, 6, this.#paint.fill("queued"));
    else if (interval.kind === "deferred") {
      this.#bar(from, y, long, BAR, this.#striped());
    } else {
      this.#bar(from, y, long, BAR, this.#paint.fill(look));
      if (look === "failed" && long >= 16) {
        context.save();
        context.translate(from + long / 2 - 6, y - 6);
        context.scale(0.75, 0.75);
        context.strokeStyle = "white";
        context.lineWidth = 2;
        context.stroke(this.#paint.glyph("cross"));
        context.restore();
      }
    }
  }

  #bar(x: number, y: number, width: number, height: number, fill: string | CanvasPattern): void {
    const context = this.#context;
    context.fillStyle = fill;
    context.beginPath();
    context.roundRect(x, y - height / 2, width, height, Math.min(2, width / 2));
    context.fill();
  }

  /**
   * Each instance as a thin line, in the order of the map; of more than there are pixels, some lie over each other. Those of a large
   * map that were not read leave their place empty.
   */
  #map(
    instances: readonly TimelineInstance[],
    { height, top, total }: { readonly top: number; readonly height: number; readonly total: number },
  ): void {
    const all = Math.max(total, instances.length);
    const thick = Math.max(1, Math.min(4, height / all));
    for (const [at, { intervals, mapIndex }] of instances.entries()) {
      const y = top + (height * ((total > instances.length ? Math.min(mapIndex, all - 1) : at) + 0.5)) / all;
      for (const interval of intervals) {
        const from = this.#x(interval.start);
        const to = this.#x(this.#until(interval));
        if (to < 0 || from > this.#scene.width) continue;
        const isThin = interval.kind === "scheduled" || interval.kind === "queued";
        this.#context.fillStyle =
          interval.kind === "running"
            ? this.#paint.fill(lookOfInterval(interval))
            : this.#paint.fill(interval.kind);
        const size = isThin ? Math.max(0.5, thick / 2) : thick - (thick > 2 ? 1 : 0);
        // Many waiting ones must not hide those that run.
        this.#context.globalAlpha = interval.kind === "scheduled" ? 0.3 : 1;
        this.#context.fillRect(from, y - size / 2, Math.max(to - from, isThin ? 0.5 : 1), size);
        this.#context.globalAlpha = 1;
      }
    }
  }

  #expected({ decides, end, lateEnd, start }: Expected, y: number): void {
    const context = this.#context;
    const [from, to, late] = [this.#x(start), this.#x(end), this.#x(lateEnd)];
    context.strokeStyle = this.#paint.color(decides ? "--text" : "--muted");
    context.lineWidth = 1;
    this.#dashed([3, 2], () => {
      context.beginPath();
      context.roundRect(from, y - BAR / 2 + 0.5, Math.max(2, to - from), BAR - 1, 2);
      context.stroke();
    });
    if (late - to > 3) this.#dashed([1, 3], () => this.#line(to, y, late, y, "--muted"));
  }

  /** Frames around the steps, and a line from the end of each to the next. */
  #path(steps: readonly PathStep[]): void {
    const { height, isRunning, now, rows } = this.#scene;
    const rowOf = new Map(rows.map((row) => [row.kind === "task" ? row.position : -1, row]));
    const context = this.#context;
    context.strokeStyle = this.#paint.color("--text");
    context.lineWidth = 1.25;
    let before: { readonly row: Row; readonly end: number } | null = null;
    for (const [at, step] of steps.entries()) {
      const row = rowOf.get(step.task);
      if (row === undefined) continue;
      const y = this.#y(row) + row.height / 2;
      // The last one goes on while the run does.
      const end = isRunning && at === steps.length - 1 ? Math.max(step.end, now) : step.end;
      const [from, to] = [this.#x(step.start), this.#x(end)];
      const half = row.height / 2 - 4;
      if (y > -row.height && y < height + row.height) {
        context.beginPath();
        context.roundRect(from - 1.5, y - half, Math.max(4, to - from + 3), 2 * half, 4);
        context.stroke();
      }
      if (before !== null && before.row !== row) {
        const fromY = this.#y(before.row) + before.row.height / 2;
        const down = y > fromY;
        const start = fromY + (down ? 1 : -1) * (before.row.height / 2 - 4);
        const x = Math.round(this.#x(before.end)) + 0.5;
        context.beginPath();
        context.moveTo(x, start);
        context.lineTo(x, y + (down ? -half : half));
        context.stroke();
      }
      before = { row, end: step.end };
    }
  }

  /** Waiting is hatched: it costs nothing. */
  #striped(): CanvasPattern | string {
    if (this.#hatch !== null) return this.#hatch;
    const tile = document.createElement("canvas");
    const scale = devicePixelRatio;
    tile.width = tile.height = 6 * scale;
    const context = tile.getContext("2d")!;
    context.scale(scale, scale);
    const color = this.#paint.fill("deferred");
    context.globalAlpha = 0.45;
    context.fillStyle = color;
    context.fillRect(0, 0, 6, 6);
    context.globalAlpha = 1;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    for (const shift of [-6, 0, 6]) {
      context.beginPath();
      context.moveTo(shift, 6);
      context.lineTo(shift + 6, 0);
      context.stroke();
    }
    const pattern = this.#context.createPattern(tile, "repeat");
    if (pattern === null) return color;
    pattern.setTransform(new DOMMatrix().scale(1 / scale));
    this.#hatch = pattern;
    return pattern;
  }
}

/** What a bar does not show by itself. */
function noteOf({ task }: TaskRow): string {
  const [instance] = task.instances;
  if (task.map !== null && task.instances.length > 1) {
    const slowest = Math.max(
      ...task.instances.map(({ intervals }) =>
        intervals.length === 0 ? 0 : intervals.at(-1)!.end - intervals[0]!.start,
      ),
    );
    const { counts, instances } = task.map;
    const failed = counts.find(({ state }) => state === "failed")?.count ?? 0;
    const drawn = task.instances.length;
    return [
      `slowest ${duration(slowest)}`,
      ...(failed > 0 ? [`${count(failed)} failed`] : []),
      ...(drawn < instances ? [`${count(drawn)} of ${count(instances)} drawn`] : []),
    ].join(" · ");
  }
  if (instance === undefined || instance.tries < 2) return "";
  const pauses = instance.intervals
    .filter(({ kind }) => kind === "up_for_retry")
    .reduce((sum, { end, start }) => sum + end - start, 0);
  return `${instance.tries} tries${pauses > 0 ? `, ${duration(pauses)} between` : ""}`;
}
