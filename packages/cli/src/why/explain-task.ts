/** `tasks why`: prints the chain of causes. */
import type { InstanceName } from "../client/task-log.ts";
import { instanceName } from "../output/instance-name.ts";
import { paintState } from "../output/state.ts";
import { withMoments } from "../output/when.ts";
import type { Session } from "../session.ts";
import { plainLine } from "../terminal.ts";
import { type Cause, causesOf, outlookOf } from "./causes.ts";
import { RunFacts, type Verdict } from "./run-facts.ts";

export async function explainTask(session: Session, name: InstanceName): Promise<void> {
  const facts = new RunFacts(session.client, name.dagId, name.runId);
  const verdict = await facts.verdict(name.taskId, name.mapIndex);
  const { instances, reasons, state } = verdict;
  // The reasons explain instances of a map; the map itself waits for nothing.
  const causes = instances === null ? await causesOf(facts, name) : [];
  const outlook = await outlookOf(facts, name);
  if (session.format !== "table") {
    return session.printObject(
      {
        task_id: name.taskId,
        map_index: name.mapIndex,
        state,
        ...(instances && { instances }),
        failed_upstream: verdict.failed_upstream,
        reasons,
        because: causes,
        outlook: outlook.map(({ says }) => says),
      },
      [],
    );
  }
  const { terminal } = session;
  const title = terminal.paint(
    "bold",
    plainLine(instanceName({ ...verdict, task_id: name.taskId, map_index: name.mapIndex })),
  );
  if (instances !== null) return printMap(session, title, verdict);
  const isBare = causes.length === 0 && outlook.length === 0;
  const bare = isBare ? causeText(session, { code: reasons[0]?.code ?? null, says: nothing(state) }) : "";
  session.printSentence(`${title} is ${paintState(terminal, state)}${bare}`);
  printCauses(session, causes, 1);
  for (const cause of outlook) session.printSentence(`  ${causeText(session, cause)}`);
  const failed = verdict.failed_upstream;
  if (state === "failed") session.noteSentence(`Its log: ${logCommand(name)}`);
  else if (failed !== null)
    session.noteSentence(
      `${instanceName(failed)} failed first. Its log: ${logCommand({ ...name, taskId: failed.task_id, mapIndex: failed.map_index })}`,
    );
}

function logCommand({ dagId, mapIndex, runId, taskId }: InstanceName): string {
  const which = mapIndex < 0 ? "" : ` --map-index ${mapIndex}`;
  return `\`tradewind tasks logs ${dagId} ${runId} ${taskId}${which}\``;
}

/** The number of instances per state, then one explanation per kind. */
function printMap(session: Session, title: string, { instances, reasons }: Verdict): void {
  const { terminal } = session;
  const total = instances?.reduce((sum, { count }) => sum + count, 0) ?? 0;
  const each = instances?.map(({ count, state }) => `${count} ${paintState(terminal, state)}`) ?? [];
  session.printSentence(
    `${title} has ${total} ${total === 1 ? "instance" : "instances"}: ${each.join(", ")}`,
  );
  for (const { code, message } of reasons.slice(1))
    session.printSentence(`  ${causeText(session, { code, says: message })}`);
}

function printCauses(session: Session, causes: readonly Cause[], depth: number): void {
  for (const cause of causes) {
    const because = session.terminal.paint("yellow", "because");
    session.printSentence(`${"  ".repeat(depth)}${because} ${causeText(session, cause)}`);
    printCauses(session, cause.because, depth + 1);
  }
}

function causeText({ terminal }: Session, { code, says }: Pick<Cause, "code" | "says">): string {
  const text = withMoments(plainLine(says));
  return code === null ? text : `${text} ${terminal.paint("dim", `[${code}]`)}`;
}

function nothing(state: string | null): string {
  if (state === "running" || state === "restarting") return ": nothing blocks it";
  return ": it has ended, and runs again only when it is cleared (`tradewind tasks clear`)";
}
