import type { Instance, InstanceRow } from "../../src/model/index.ts";

/** The row that an instance is stored as. */
export function rowOf({ node, ...instance }: Instance): InstanceRow {
  const { mapIndex, state, tryNumber, maxTries, attempt, retryAt, infraLosses, resumedAttempt } = instance;
  return {
    taskId: node.id,
    mapIndex,
    state,
    tryNumber,
    maxTries,
    attempt,
    retryAt,
    infraLosses,
    resumedAttempt,
  };
}
