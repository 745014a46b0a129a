/** `tasks why`: prints the chain of causes. */
import type { InstanceName } from "../client/task-log.ts";
import { paintState } from "../output/state.ts";
import type { Session } from "../session.ts";
import { plainLine } from "../terminal.ts";
import { type Cause, causesOf, outlookOf, placeName } from "./causes.ts";
import { RunFacts } from "./run-facts.ts";

export async function explainTask(session: Session, name: InstanceName): Promise<void> {
  const facts = new RunFacts(session.client, name.dagId, name.runId);
  const { state } = await facts.verdict(name.taskId, name.mapIndex);
  const causes = await causesOf(facts, name);
  const outlook = await outlookOf(facts, name);
  if (session.format !== "table") {
    return session.printObject(
      { task_id: name.taskId, map_index: name.mapIndex, state, because: causes, outlook },
      [],
    );
  }
  const { terminal } = session;
  const title = terminal.paint("bold", placeName(name));
  const isBare = causes.length === 0 && outlook.length === 0;
  terminal.data(`${title} is ${paintState(terminal, state)}${isBare ? nothing(state) : ""}`);
  printCauses(session, causes, 1);
  for (const says of outlook) terminal.data(`  ${plainLine(says)}`);
  if (state === "failed")
    session.note(`Its log: \`tradewind tasks logs ${name.dagId} ${name.runId} ${name.taskId}\``);
}

function printCauses(session: Session, causes: readonly Cause[], depth: number): void {
  for (const { says, because } of causes) {
    session.terminal.data(
      `${"  ".repeat(depth)}${session.terminal.paint("yellow", "because")} ${plainLine(says)}`,
    );
    printCauses(session, because, depth + 1);
  }
}

function nothing(state: string | null): string {
  if (state === "running" || state === "restarting") return ": nothing holds it back";
  return ": it has ended, and runs again only when it is cleared (`tradewind tasks clear`)";
}
