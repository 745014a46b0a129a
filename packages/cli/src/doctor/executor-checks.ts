import type { Client } from "../client/client.ts";
import { type Executor, readExecutors } from "../client/executors.ts";
import type { Check } from "./checks.ts";

export async function* checkExecutors(client: Client): AsyncGenerator<Check> {
  yield* judgeExecutors(await readExecutors(client));
}

/** One line per executor: its load, or what keeps it from starting tasks. */
function* judgeExecutors(executors: readonly Executor[]): Generator<Check> {
  for (const { name, problems, running, slots, waiting } of executors) {
    const check = `executor ${name}`;
    if (problems.length === 0) {
      const of = slots === null ? "" : ` of ${slots}`;
      yield { name: check, result: "ok", says: `${running}${of} slots in use, ${waiting} waiting` };
    }
    for (const { message, remedy } of problems)
      yield { name: check, result: "warn", says: message, ...(remedy !== null && { remedy }) };
  }
}
