/** Every letter created exactly one run, and was deleted only after that was stored. */
import type { FaultInstallation } from "./installation.ts";
import { triggerLines } from "./wait-ledger.ts";

export async function judgeMail(
  installation: FaultInstallation,
  dagId: string,
  posted: readonly string[],
): Promise<string[]> {
  const rows = await installation.sql<{ run_id: string; letter: string; created_at: Date }>(
    "SELECT run_id, conf->'event'->>'letter' AS letter, created_at FROM dag_run WHERE dag_id = $1",
    [dagId],
  );
  const runs = Map.groupBy(rows, (row) => row.letter);
  const problems = posted.flatMap((letter) => {
    const made = runs.get(letter) ?? [];
    return made.length === 1 ? [] : [`${letter} made ${made.length} runs of ${dagId}`];
  });
  for (const { kind, name, did, wall } of triggerLines(installation.ledger.path)) {
    if (kind !== `fault.${dagId}` || did !== "acknowledged") continue;
    const made = runs.get(name)?.[0]?.created_at.getTime() ?? Number.POSITIVE_INFINITY;
    if (wall < made) problems.push(`${name} of ${dagId} was acknowledged before it was stored`);
  }
  const strangers = rows.filter(({ letter }) => !posted.includes(letter));
  return [...problems, ...strangers.map((row) => `an unexpected run of ${dagId}: ${row.run_id}`)];
}
