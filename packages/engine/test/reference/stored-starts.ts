/** The stored table of pending starts. */
import assert from "node:assert/strict";
import type { StartChanges, StoredStart } from "../../src/model/index.ts";

/** The table after a batch with these changes. Asserts that no start is removed twice, added twice or out of order. */
export function startsAfter(
  stored: readonly StoredStart[],
  changes: readonly StartChanges[],
): readonly StoredStart[] {
  const after = [...stored];
  for (const { added, before, from, taskId } of changes) {
    for (let ordinal = from; ordinal < before; ordinal++) {
      const index = after.findIndex((start) => start.taskId === taskId && start.ordinal === ordinal);
      assert.notEqual(index, -1, `start ${ordinal} of ${taskId} is not stored`);
      after.splice(index, 1);
    }
    for (const start of added) {
      const last = after.findLast((each) => each.taskId === taskId);
      assert.ok(
        last === undefined || last.ordinal + 1 === start.ordinal,
        `start ${start.ordinal} of ${taskId}`,
      );
      after.push(start);
    }
  }
  return JSON.parse(JSON.stringify(after)) as StoredStart[];
}
