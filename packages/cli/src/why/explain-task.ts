/** `tasks why`: prints the chain of causes. */
import type { InstanceName } from "../client/task-log.ts";
import { paintState } from "../output/state.ts";
import type { Session } from "../session.ts";
import { plainLine } from "../terminal.ts";
import { type Cause, causesOf, outlookOf, placeName } from "./causes.ts";
import { RunFacts } from "./run-facts.ts";

export async function explainTask(session: Session, name: InstanceName): Promise<void> {
  const facts = new RunFacts(session.client, name.dagId, name.runId);
  const { state, reasons } = await facts.verdict(name.taskId, name.mapIndex);
  const causes = await causesOf(facts, name);
  const outlook = await outlookOf(facts, name);
  if (session.format !== "table") {
    return session.printObject(
      {
        task_id: name.taskId,
        map_index: name.mapIndex,
        state,
        reasons,
        because: causes,
        outlook: outlook.map(({ says }) => says),
      },
      [],
    );
  }
  const { terminal } = session;
  const title = terminal.paint("bold", placeName(name));
  const isBare = causes.length === 0 && outlook.length === 0;
  const bare = isBare ? causeText(session, { code: reasons[0]?.code ?? null, says: nothing(state) }) : "";
  terminal.data(`${title} is ${paintState(terminal, state)}${bare}`);
  printCauses(session, causes, 1);
  for (const cause of outlook) terminal.data(`  ${causeText(session, cause)}`);
  if (state === "failed")
    session.note(`Its log: \`tradewind tasks logs ${name.dagId} ${name.runId} ${name.taskId}\``);
}

function printCauses(session: Session, causes: readonly Cause[], depth: number): void {
  for (const cause of causes) {
    const because = session.terminal.paint("yellow", "because");
    session.terminal.data(`${"  ".repeat(depth)}${because} ${causeText(session, cause)}`);
    printCauses(session, cause.because, depth + 1);
  }
}

function causeText({ terminal }: Session, { code, says }: Pick<Cause, "code" | "says">): string {
  return code === null ? plainLine(says) : `${plainLine(says)} ${terminal.paint("dim", `[${code}]`)}`;
}

function nothing(state: string | null): string {
  if (state === "running" || state === "restarting") return ": nothing holds it back";
  return ": it has ended, and runs again only when it is cleared (`tradewind tasks clear`)";
}
