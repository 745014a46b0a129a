/** Longer delays would fire at once. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** Resolves after the delay, or at once if `abort` fires; never rejects and leaves no timer behind. */
export async function sleep(ms: number, abort: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !abort.aborted; left -= LONGEST_TIMER_MS) {
    await nap(Math.min(left, LONGEST_TIMER_MS), abort);
  }
}

function nap(ms: number, abort: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      abort.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    abort.addEventListener("abort", end);
  });
}
