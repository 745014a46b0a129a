import { parseArgs } from "node:util";

const SCENARIOS = ["a", "b", "c", "d", "e", "f", "g", "h"] as const;
type ScenarioKey = (typeof SCENARIOS)[number];

export interface Options {
  readonly only: ReadonlySet<ScenarioKey>;
  /** Fewer repetitions and a smaller history: to see that it runs, not to compare. */
  readonly quick: boolean;
  readonly repeat: number;
  readonly peers: boolean;
  readonly json: boolean;
}

export const USAGE = `npm run bench -- [options]

  --only a,b   these scenarios only (a to h)
  --peers      the same shapes on the peers that install from npm, interleaved with Tradewind
  --repeat n   measured runs per scenario, after some that warm up; thrice as many of the short chain (default 7; 3 with --quick)
  --quick      fewer runs, a tenth of the history: shows that it works, not how fast
  --json       print the results as JSON instead of a table`;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      peers: { type: "boolean", default: false },
      repeat: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const repeat = Number(values.repeat ?? (values.quick ? 3 : 7));
  if (!Number.isInteger(repeat) || repeat < 1)
    throw new Error(`--repeat ${values.repeat}: give a number from 1`);
  return { only: keys(values.only), quick: values.quick, repeat, peers: values.peers, json: values.json };
}

function keys(text: string | undefined): ReadonlySet<ScenarioKey> {
  if (text === undefined) return new Set(SCENARIOS);
  const wanted = text.split(",").map((key) => key.trim());
  const unknown = wanted.find((key) => !(SCENARIOS as readonly string[]).includes(key));
  if (unknown !== undefined)
    throw new Error(`--only ${text}: "${unknown}" is none of ${SCENARIOS.join(", ")}`);
  return new Set(wanted as ScenarioKey[]);
}
