/** Writes to the ledger, for tasks of the fault tests. Loaded by task processes. */
import { appendFileSync } from "node:fs";
import type { TaskContext } from "tradewind";
import type { LedgerLine } from "./ledger.ts";

/** One write with O_APPEND: lines of many processes never mix. All processes share the monotonic clock. */
export function record(ctx: TaskContext, fact: Pick<LedgerLine, "event" | "outcome" | "label">): void {
  const line: LedgerLine = {
    dag: ctx.run.dagId,
    run: ctx.run.id,
    task: ctx.taskId,
    try: ctx.tryNumber,
    attempt: ctx.attempt,
    ...fact,
    at: Number(process.hrtime.bigint()) / 1e6,
    pid: process.pid,
    scheduler: process.ppid,
  };
  appendFileSync(process.env.TRADEWIND_TASK_LEDGER as string, `${JSON.stringify(line)}\n`);
}
