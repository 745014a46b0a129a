/** The child of `dags test`: imports one bundle, runs one DAG of it in-process, reports, and ends. */
import { pathToFileURL } from "node:url";
import { PROGRAM, type Program } from "@tradewind/sdk/program";
import { type RunnableDag, runDag } from "@tradewind/testing";
import type { TestReport, TestRequest } from "./protocol.ts";

const channel = process.send?.bind(process);
if (!channel) throw new Error("This file is started by `tradewind dags test`, not by hand.");
// The author's code shares this process; it has no business on the channel.
process.send = undefined;
const send = (report: TestReport, sent: () => void = () => {}): void => {
  channel(report, undefined, undefined, sent);
};
process.on("disconnect", () => process.exit(1));

process.once("message", (request: TestRequest) => {
  void test(request).then((last) => send(last, () => process.exit(0)));
});

async function test(request: TestRequest): Promise<TestReport> {
  try {
    const exports = (await import(pathToFileURL(request.codePath).href)) as Record<string, unknown>;
    const startedAt = performance.now();
    const { state, reason, tasks } = await runDag(findDag(exports, request.dagId), {
      ...request.options,
      onEvent: send,
    });
    return { type: "finished", state, reason, durationMs: performance.now() - startedAt, tasks };
  } catch (error) {
    return { type: "refused", message: error instanceof Error ? error.message : String(error) };
  }
}

function findDag(exports: Record<string, unknown>, dagId: string): RunnableDag {
  for (const value of Object.values(exports).flat(2)) {
    if (value === null || (typeof value !== "object" && typeof value !== "function")) continue;
    const program = (value as { [PROGRAM]?: Program })[PROGRAM];
    if (program?.describe().dagId === dagId) return { [PROGRAM]: program };
  }
  throw new Error(`The bundle does not hold the DAG ${dagId}.`);
}
