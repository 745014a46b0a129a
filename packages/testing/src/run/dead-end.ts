/** Errors for a run that can neither continue nor end, or that would never end. */
import type { Instance, RunModel } from "@tradewind/engine/model";
import { DagTestError } from "../errors.ts";
import type { Waits } from "../trigger/waits.ts";

/** No work is running that would end by itself, and nothing is due. */
export function stuck(
  dagId: string,
  { model, waits }: { readonly model: RunModel; readonly waits: Waits },
): DagTestError {
  const waiting = [...model.instances()].find(({ state }) => state === "deferred");
  const wait = waits.of(waiting?.attempt ?? null);
  if (wait) {
    const { deferral, instance } = wait;
    return new DagTestError(
      "TW_TEST_NEVER_FIRES",
      `task "${instance.node.id}" waits for "${deferral.trigger.kind}", which does not fire, without a timeout`,
      "give an event in `triggers` (or `signals`, `approvals`), or the wait a timeout",
    );
  }
  return new DagTestError("TW_TEST_STUCK", `run of "${dagId}": nothing runs, and nothing is due`);
}

/** A task has been started so often that the run is likely endless. */
export function endless({ node, tryNumber }: Instance, elapsedMs: number): DagTestError {
  return new DagTestError(
    "TW_TEST_ENDLESS",
    `task "${node.id}" has run ${tryNumber - 1} times within ${elapsedMs / 1_000} s of the run`,
    'let "until" end the run earlier; if no time has passed, its rules start each other forever',
  );
}
