/** Options shared by `dags test` and `tasks test`. */
import { parseTestSignal } from "../../dag-test/given-signal.ts";
import type { TestOptions } from "../../dag-test/parent.ts";
import { parseTestConnections } from "../../input/connection-uri.ts";
import { parseJson, parsePairs } from "../../input/values.ts";

interface Given {
  readonly variable?: readonly string[] | undefined;
  readonly connection?: readonly string[] | undefined;
  readonly event?: readonly string[] | undefined;
  readonly signal?: readonly string[] | undefined;
}

export function surroundings({
  connection = [],
  event = [],
  signal = [],
  variable = [],
}: Given): Pick<TestOptions, "connections" | "events" | "signals" | "variables"> {
  const events = Object.entries(parsePairs(event, "--event"));
  return {
    variables: parsePairs(variable, "--variable"),
    connections: parseTestConnections(parsePairs(connection, "--connection")),
    events: Object.fromEntries(events.map(([key, text]) => [key, parseJson(text, `--event ${key}`)])),
    signals: signal.map(parseTestSignal),
  };
}
