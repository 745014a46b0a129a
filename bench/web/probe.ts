/**
 * Runs in every measured page before its own code. Marks in the trace when something is on the screen: a mark is set by the first
 * frame after the condition holds, and the paint of that frame is part of the time before it.
 */
export const PROBE = `
globalThis.bench = {
  /** Resolves when the frame after the next one begins: the next one is painted. */
  painted: () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  /** The time, in ms since the page began to load, at which the condition was painted. */
  async shown(isShown) {
    while (!isShown()) await new Promise((resolve) => requestAnimationFrame(resolve));
    await this.painted();
    performance.mark("shown");
    return performance.now();
  },
  /** Whether something but the background was drawn on the first canvas that is as large as its grid. */
  cells: () => {
    const canvas = [...document.querySelectorAll('[role="grid"] canvas')].at(-1);
    return canvas !== undefined && canvas.width > 300 && globalThis.bench.draws > 0;
  },
  draws: 0,
};
{
  const { drawImage } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.drawImage = function (...args) {
    globalThis.bench.draws += 1;
    return drawImage.apply(this, args);
  };
}
`;
