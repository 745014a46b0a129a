/** Measures how late timers fire: the delay that other work on the machine adds to each step between processes. */
const EVERY_MS = 5;

/** Call the returned function for the lateness of each timer since the start, in milliseconds. */
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
