import { parseArgs } from "node:util";

const SCENARIOS = ["a", "b", "c", "d", "e", "f", "g", "h"] as const;
type ScenarioKey = (typeof SCENARIOS)[number];
const PEERS = ["graphile-worker", "pg-boss", "dbos", "openworkflow", "bullmq"] as const;
export type PeerName = (typeof PEERS)[number];

export interface Options {
  readonly only: ReadonlySet<ScenarioKey>;
  /** Fewer repetitions and a smaller history: to check that it runs, not to compare. */
  readonly quick: boolean;
  readonly repeat: number;
  /** In this order. Default: none. */
  readonly peers: readonly PeerName[];
  readonly json: boolean;
}

export const USAGE = `npm run bench -- [options]

  --only a,b   these scenarios only (a to h)
  --peers      the same shapes on the peers that install from npm, interleaved with Tradewind
  --peer x,y   these of them only: ${PEERS.join(", ")}
  --repeat n   measured runs per scenario, after some that warm up; thrice as many of the short ones (default 7; 3 with --quick)
  --quick      fewer runs, a tenth of the history: shows that it works, not how fast
  --json       print the results as JSON instead of a table`;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      peers: { type: "boolean", default: false },
      peer: { type: "string" },
      repeat: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const repeat = Number(values.repeat ?? (values.quick ? 3 : 7));
  if (!Number.isInteger(repeat) || repeat < 1)
    throw new Error(`--repeat ${values.repeat}: give a number from 1`);
  const { quick, json } = values;
  const only = new Set(chosen("--only", values.only, SCENARIOS));
  const peers = values.peers || values.peer !== undefined ? chosen("--peer", values.peer, PEERS) : [];
  return { only, quick, repeat, peers, json };
}

/** All of them if there is no list. */
export function chosen<T extends string>(
  option: string,
  list: string | undefined,
  known: readonly T[],
): readonly T[] {
  if (list === undefined) return known;
  const wanted = list.split(",").map((name) => name.trim());
  const unknown = wanted.find((name) => !(known as readonly string[]).includes(name));
  if (unknown !== undefined)
    throw new Error(`${option} ${list}: "${unknown}" is not one of ${known.join(", ")}`);
  return known.filter((name) => wanted.includes(name));
}
