import { setTimeout as sleep } from "node:timers/promises";

/** Polls every millisecond: for cheap conditions, such as the scheduler's memory. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitMs = 120_000,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`after ${limitMs} ms still not: ${what}`);
    await sleep(1);
  }
}
