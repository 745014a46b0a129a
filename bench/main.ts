/**
 * `npm run bench`: the speed of a whole Tradewind on this machine. Prints a table and writes bench/results/<time>.json.
 * The exit code is 0 even if a bar is missed: other work on a shared machine can cause that.
 */
import { load, machineFacts } from "./machine.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import { comparePeers, type PeerReport, peerTable } from "./peers/compare.ts";
import { judged, print, type Results as SharedResults, store } from "./report.ts";
import type { Figure } from "./result.ts";
import { openRig, type Rig } from "./rig.ts";
import { eventCost } from "./scenario/event-cost.ts";
import { loadFiles } from "./scenario/files.ts";
import { withHistory } from "./scenario/history.ts";
import { idle } from "./scenario/idle.ts";
import { CHAIN, FAN, INDEPENDENT, measure, RUNS, SHAPE_FILES, shapeFigure } from "./scenario/shape.ts";
import { stepTimes } from "./scenario/step-times.ts";

interface Results extends SharedResults {
  readonly options: { readonly quick: boolean; readonly repeat: number };
  readonly peers: PeerReport | null;
}

async function main(options: Options): Promise<void> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  const before = load();
  const rig = await openRig();
  let results: Results;
  try {
    await rig.publish(SHAPE_FILES);
    const machine = await machineFacts(rig.database);
    const figures = await measureAll(rig, options, say);
    const peers = options.peers.length > 0 ? await comparePeers(rig, options, say) : null;
    results = {
      at: new Date().toISOString(),
      machine,
      load: { before, after: load() },
      options: { quick: options.quick, repeat: options.repeat },
      figures: judged(figures),
      peers,
    };
  } finally {
    await rig.stop();
  }
  const file = await store(results);
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else {
    print(results);
    if (results.peers) console.log(`\n${peerTable(results.peers)}`);
  }
  say(`\nwritten to ${file}`);
}

async function measureAll(rig: Rig, options: Options, say: (text: string) => void): Promise<Figure[]> {
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!(options.only as ReadonlySet<string>).has(key)) return;
    say(`(${key}) ...`);
    figures.push(...(await work()));
  };
  for (const shape of [CHAIN, FAN, RUNS, INDEPENDENT]) {
    await scenario(shape.key, async () => {
      const done = await measure(rig, shape, options.repeat);
      const steps =
        shape === CHAIN
          ? await stepTimes(
              rig,
              done.flatMap((each) => each.ids),
            )
          : [];
      return [shapeFigure(shape, done), ...steps];
    });
  }
  await scenario("e", eventCost);
  await scenario("f", () => withHistory(rig, options));
  await scenario("g", loadFiles);
  await scenario("h", () => idle(options));
  return figures;
}

try {
  await main(readOptions(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof Error) || !("code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")))
    throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
