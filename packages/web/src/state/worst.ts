/** The state that stands for several: failures first, then what is being done, then what is still to do. As on the server. */
const WORST = [
  ...["failed", "upstream_failed", "up_for_retry", "restarting", "running", "up_for_reschedule", "deferred"],
  ...["queued", "scheduled", "pending", "success", "skipped", "removed", "none"],
];

/** The rank of each byte of a legend; a lower one is worse. */
export function ranksOf(legend: readonly string[]): Uint8Array {
  return Uint8Array.from(legend, (state) => {
    const rank = WORST.indexOf(state);
    return rank < 0 ? WORST.length : rank;
  });
}
