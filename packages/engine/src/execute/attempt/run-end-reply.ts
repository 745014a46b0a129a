/** The state of another run as a reply to a child: as lists, because large outputs are transferred in lists only. */
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

/** Decodes the reply in the child. */
export function readRunEnd(reply: Json): RunEnd | null {
  if (reply === null) return null;
  const [state, tasks] = reply as [string, [string, SettledInput["state"], Json | undefined][]];
  return {
    state,
    tasks: Object.fromEntries(tasks.map(([taskId, state, value]) => [taskId, { state, value }])),
  };
}
