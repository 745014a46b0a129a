/** Where errors, warnings, trigger lines and matches are in the whole log. A click goes there. */
import { useEffect, useRef } from "react";
import { useCanvasPaint } from "../state/use-canvas-paint.ts";
import { cx } from "../ui/class-names.ts";
import { kindOf } from "./log-rows.ts";

const WIDTH = 10;

export function Minimap({
  kinds,
  matches,
  first,
  last,
  onGo,
}: {
  readonly kinds: Uint8Array;
  readonly matches: readonly number[];
  /** The lines in the window. */
  readonly first: number;
  readonly last: number;
  readonly onGo: (line: number) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const paint = useCanvasPaint();
  const lines = kinds.length;
  useEffect(() => {
    const element = canvas.current!;
    const height = element.clientHeight;
    const scale = devicePixelRatio;
    element.width = WIDTH * scale;
    element.height = height * scale;
    const context = element.getContext("2d")!;
    context.scale(scale, scale);
    const draw = (marks: Uint8Array, color: string, x: number, width: number) => {
      context.fillStyle = color;
      for (let y = 0; y < marks.length; y += 1) if (marks[y] === 1) context.fillRect(x, y, width, 2);
    };
    const bands = {
      trigger: new Uint8Array(height),
      warn: new Uint8Array(height),
      error: new Uint8Array(height),
    };
    const perLine = height / Math.max(lines, 1);
    for (let line = 0; line < lines; line += 1) {
      const kind = kindOf(kinds[line]!);
      if (kind === "trigger" || kind === "warn" || kind === "error")
        bands[kind][Math.floor(line * perLine)] = 1;
    }
    draw(bands.trigger, paint.color("--s-deferred"), 4, 6);
    draw(bands.warn, paint.color("--s-retry"), 4, 6);
    draw(bands.error, paint.color("--s-failed"), 4, 6);
    const found = new Uint8Array(height);
    for (const line of matches) found[Math.floor(line * perLine)] = 1;
    draw(found, paint.color("--s-queued"), 0, 4);
  }, [kinds, matches, lines, paint]);
  const percent = (line: number) => `${(100 * line) / Math.max(lines, 1)}%`;
  return (
    <button
      type="button"
      tabIndex={-1}
      aria-hidden
      className={cx(
        "relative w-2.5 shrink-0 border-l border-line",
        // Of a log that fits into the window, it would say nothing.
        first === 0 && last >= lines && "invisible",
      )}
      onClick={(event) => {
        const { height, top } = event.currentTarget.getBoundingClientRect();
        onGo(Math.floor(((event.clientY - top) / height) * lines));
      }}
    >
      <canvas ref={canvas} className="absolute inset-0 size-full" />
      <span
        className="absolute inset-x-0 min-h-1 bg-text/12"
        style={{ top: percent(first), height: percent(last - first) }}
      />
    </button>
  );
}
