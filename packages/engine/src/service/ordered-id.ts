/**
 * Ids that sort by the time of their creation: UUIDs of version 7. Ids of one process also sort within a millisecond.
 */
import { randomUUID } from "node:crypto";

/** Ids of one millisecond. */
const MOST = 0x1000;

let ms = 0;
let count = 0;

export function orderedId(): string {
  const now = Date.now();
  if (now > ms) [ms, count] = [now, 0];
  else if (++count === MOST) [ms, count] = [ms + 1, 0];
  const time = ms.toString(16).padStart(12, "0");
  const rest = randomUUID().slice(18);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count.toString(16).padStart(3, "0")}${rest}`;
}
