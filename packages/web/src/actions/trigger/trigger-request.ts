/** What triggering a run sends, and the same as a command. Pure. */
import { commandOf, type Request } from "../command-text.ts";

export interface TriggerInput {
  readonly dagId: string;
  readonly conf: Readonly<Record<string, unknown>>;
  /** As of an input of the kind datetime-local, in UTC; "" for none. */
  readonly logicalDate: string;
  readonly note: string;
}

export function triggerBody({ conf, logicalDate, note }: TriggerInput) {
  return {
    ...(Object.keys(conf).length > 0 && { conf }),
    logical_date: logicalDate === "" ? null : `${logicalDate.padEnd(19, ":00")}Z`,
    ...(note.trim() !== "" && { note: note.trim() }),
  };
}

export function triggerRequest(input: TriggerInput): Request {
  return {
    method: "POST",
    path: `/api/v2/dags/${encodeURIComponent(input.dagId)}/dagRuns`,
    body: triggerBody(input),
  };
}

export function triggerCommand(input: TriggerInput): string {
  const { conf, logical_date: date, note } = triggerBody(input);
  return commandOf(
    ...["tradewind", "dags", "trigger", input.dagId],
    ...(conf === undefined ? [] : ["--conf", JSON.stringify(conf)]),
    ...(date === null ? [] : ["--logical-date", date]),
    ...(note === undefined ? [] : ["--note", note]),
  );
}
