/** Options shared by `dags test` and `tasks test`. */
import { Option } from "@commander-js/extra-typings";
import { parseTestSignal } from "../../dag-test/given-signal.ts";
import type { TestOptions } from "../../dag-test/parent.ts";
import { parseTestConnections } from "../../input/connection-uri.ts";
import { parseConf, parseInstant, parseJson, parsePairs } from "../../input/values.ts";

export const TEST_OPTIONS = {
  dags: new Option("--dags <folder>", "DAG folder (TRADEWIND_DAGS; default: dags)"),
  conf: new Option("--conf <json>", "params of the run: a JSON object, @file, or @- for stdin").argParser(
    parseConf,
  ),
  logicalDate: new Option("--logical-date <date>", "logical date of the run").argParser(parseInstant),
  variable: new Option("--variable <key=value...>", "value returned by ctx.variable"),
  connection: new Option(
    "--connection <id=uri...>",
    "connection returned by ctx.connection: id=type://login:password@host:port/schema",
  ),
  event: new Option("--event <key=json...>", "event of a trigger, by trigger id, task or task/step"),
  approval: new Option(
    "--approval <task=answer...>",
    "answer to an approval: approve, reject, or JSON for its form",
  ),
};

interface Given {
  readonly approval?: readonly string[] | undefined;
  readonly variable?: readonly string[] | undefined;
  readonly connection?: readonly string[] | undefined;
  readonly event?: readonly string[] | undefined;
  readonly signal?: readonly string[] | undefined;
}

export function surroundings({
  approval = [],
  connection = [],
  event = [],
  signal = [],
  variable = [],
}: Given): Pick<TestOptions, "approvals" | "connections" | "events" | "signals" | "variables"> {
  const events = Object.entries(parsePairs(event, "--event"));
  const approvals = Object.entries(parsePairs(approval, "--approval"));
  return {
    approvals: Object.fromEntries(approvals.map(([task, text]) => [task, answerOf(task, text)])),
    variables: parsePairs(variable, "--variable"),
    connections: parseTestConnections(parsePairs(connection, "--connection")),
    events: Object.fromEntries(events.map(([key, text]) => [key, parseJson(text, `--event ${key}`)])),
    signals: signal.map(parseTestSignal),
  };
}

function answerOf(task: string, text: string): "approve" | "reject" | { readonly answer: unknown } {
  return text === "approve" || text === "reject" ? text : { answer: parseJson(text, `--approval ${task}`) };
}
