/** Milliseconds of the machine's monotonic clock: the same in all its processes, and never set back. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
