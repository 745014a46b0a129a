/** How another run stands, on its way to a child: as lists, since large outputs travel in lists only. */
import type { Json } from "@tradewind/sdk/manifest";
import type { RunEnd, SettledInput } from "@tradewind/sdk/program";
import type { Known } from "../../model/index.ts";
import type { FoundRun } from "../contract.ts";

export function runEndReply(found: FoundRun | null): Known {
  if (found === null) return null;
  const tasks = found.tasks.map(
    ({ taskId, state, value }): Known => (value === undefined ? [taskId, state] : [taskId, state, value]),
  );
  return [found.state, tasks];
}

/** What the child makes of it. */
export function readRunEnd(reply: Json): RunEnd | null {
  if (reply === null) return null;
  const [state, tasks] = reply as [string, [string, SettledInput["state"], Json | undefined][]];
  return {
    state,
    tasks: Object.fromEntries(tasks.map(([taskId, state, value]) => [taskId, { state, value }])),
  };
}
