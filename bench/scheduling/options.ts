import { parseArgs } from "node:util";
import { chosen } from "../options.ts";

const SCENARIOS = ["a", "b", "c", "d"] as const;

export interface Options {
  readonly only: ReadonlySet<(typeof SCENARIOS)[number]>;
  /** A tenth of everything: to see that it runs, not to compare. */
  readonly quick: boolean;
  readonly json: boolean;
}

export const USAGE = `npm run bench:scheduling -- [options]

  --only a,b   these scenarios only (a to d)
  --quick      a tenth of everything: shows that it works, not how fast
  --json       print the results as JSON instead of tables`;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const { quick, json } = values;
  return { only: new Set(chosen("--only", values.only, SCENARIOS)), quick, json };
}
