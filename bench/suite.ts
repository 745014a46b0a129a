/** The common part of the suites beside `npm run bench`: their options, and their start and end. */
import { parseArgs } from "node:util";
import { load, type Machine } from "./machine.ts";
import { chosen } from "./options.ts";
import { judged, print, type Results, store } from "./report.ts";
import type { Figure } from "./result.ts";

export interface SuiteOptions {
  readonly only: ReadonlySet<string>;
  /** A tenth of everything: to check that it runs, not to compare. */
  readonly quick: boolean;
  readonly json: boolean;
}

export interface Measured {
  readonly machine: Machine;
  readonly figures: readonly Figure[];
  /** More data for the file, and a table of it for the reader. */
  readonly more?: { readonly facts: object; readonly table: string | null };
}

/** Runs a suite, prints its table and writes bench/results/<name>-<time>.json. Bad arguments print the usage, exit code 2. */
export async function runSuite(
  name: string,
  scenarios: readonly string[],
  measure: (options: SuiteOptions, say: (text: string) => void) => Promise<Measured>,
): Promise<void> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  const options = readOptions(name, scenarios);
  if (!options) return;
  const before = load();
  const started = performance.now();
  const { figures, machine, more } = await measure(options, say);
  const sorted = figures.toSorted((a, b) => a.scenario.localeCompare(b.scenario));
  const results: Results & { options: object } = {
    at: new Date().toISOString(),
    machine,
    load: { before, after: load() },
    options: { quick: options.quick },
    figures: judged(sorted),
    ...more?.facts,
  };
  const file = await store(results, `${name}-`);
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else {
    print(results);
    if (more?.table) console.log(`\n${more.table}`);
  }
  say(`\nwritten to ${file} after ${Math.round((performance.now() - started) / 1_000)} s`);
}

function readOptions(name: string, scenarios: readonly string[]): SuiteOptions | null {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string" },
        quick: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
      },
    });
    const { json, quick } = values;
    return { only: new Set(chosen("--only", values.only, scenarios)), quick, json };
  } catch (error) {
    console.error(`${(error as Error).message}

npm run bench:${name} -- [options]

  --only a,b   these scenarios only (${scenarios[0]} to ${scenarios.at(-1)})
  --quick      a tenth of everything: shows that it works, not how fast
  --json       print the results as JSON instead of tables`);
    process.exitCode = 2;
    return null;
  }
}
