/** The time in a generated id: `manual__2026-11-16T02:00:05.123Z_4f1c`. Null for an id that a person has chosen. */
export function timeOfId(runId: string): number | null {
  const found = /^[a-z]+__(\d{4}-\d\d-\d\dT[\d:.]+Z)/.exec(runId);
  const at = found === null ? Number.NaN : Date.parse(found[1]!);
  return Number.isNaN(at) ? null : at;
}
