/** One clock for all elements that show relative times: a timer runs only while an element needs it. */
import { useSyncExternalStore } from "react";

let offset = 0;
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

/** The time of the server, as far as its last answer tells. */
export function serverNow(): number {
  return Date.now() + offset;
}

/** Called with the Date header of each answer, which has whole seconds. */
export function noticeServerTime(header: string | null): void {
  if (header === null) return;
  const difference = Date.parse(header) - Date.now();
  if (Number.isFinite(difference)) offset = Math.abs(difference) < 2_500 ? 0 : difference;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    if (document.hidden) return;
    now = serverNow();
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The current time, updated once per second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => {
    const current = serverNow();
    // The same value for one rendering.
    if (timer === undefined && Math.abs(current - now) >= 1_000) now = current;
    return now;
  });
}
