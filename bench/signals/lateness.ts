/** How late timers come: what the machine, with all that others do on it, adds to each step from process to process. */
const EVERY_MS = 5;

/** Call what it gives for the lateness of each, in milliseconds, since it was called. */
export function watchLateness(): () => number[] {
  const late: number[] = [];
  let due = performance.now() + EVERY_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    late.push(Math.max(0, now - due));
    due = now + EVERY_MS;
  }, EVERY_MS);
  return () => {
    clearInterval(timer);
    return late;
  };
}
