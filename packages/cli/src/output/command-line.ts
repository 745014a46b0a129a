/** Commands shown to users: they can be copied into a shell and reach the same server. */
import type { Session } from "../session.ts";

/** `tradewind …`, with the --home or --url of this command. */
export function commandLine({ options }: Pick<Session, "options">, ...words: readonly string[]): string {
  const { home, url } = options;
  const target = url ? ["--url", url] : home ? ["--home", home] : [];
  return ["tradewind", ...target, ...words].map(shellWord).join(" ");
}

/** The command that prints the log of an instance. */
export function logCommand(
  session: Pick<Session, "options">,
  instance: {
    readonly dag_id: string;
    readonly dag_run_id: string;
    readonly task_id: string;
    readonly map_index: number;
  },
): string {
  const { dag_id, dag_run_id, map_index, task_id } = instance;
  const which = map_index < 0 ? [] : ["--map-index", String(map_index)];
  return commandLine(session, "tasks", "logs", dag_id, dag_run_id, task_id, ...which);
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
