/** A real TriggerRunner with a real child process: runs triggers of bundles built by the real bundler. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts } from "@tradewind/sdk/program";
import { onTestFinished } from "vitest";
import { buildArtefact } from "../../src/bundle/bundler/artefact.ts";
import type { TriggerOutcome } from "../../src/model/index.ts";
import { type Logger, silentLogger } from "../../src/service/logger.ts";
import type { IgnoredAbort, RunnerReports, TriggerServices } from "../../src/trigger/contract.ts";
import { TriggerRunner } from "../../src/trigger/process/trigger-runner.ts";
import type { TriggerRunnerOptions } from "../../src/trigger/process/trigger-runner-options.ts";

type Stall = Parameters<RunnerReports["blocked"]>[0];

export type Report =
  | { readonly on: "outcome"; readonly id: number; readonly outcome: TriggerOutcome }
  | {
      readonly on: "log";
      readonly id: number;
      readonly level: string;
      readonly message: string;
      fields?: Json;
    }
  | { readonly on: "polled"; readonly id: number }
  | { readonly on: "ceased"; readonly id: number }
  | { readonly on: "members"; readonly id: number; readonly fired: readonly string[] }
  | { readonly on: "blocked"; readonly stall: Stall }
  | { readonly on: "ignoredAbort"; readonly ignored: IgnoredAbort }
  /** The engine's own log. */
  | { readonly on: "engine"; readonly message: string; readonly text: string };

/** A trigger class as source text: `body` is that of an async generator `run(args, host)`, which yields payloads. */
export function triggerText(id: string, body: string, more = ""): string {
  const name = id.replaceAll(/\W/g, "_");
  return `
class ${name} {
  static [Symbol.for("tradewind.trigger")] = {
    protocol: 1,
    id: "${id}",
    async start(args, host) {
      const events = (async function* run(args, host) { ${body} })(args, host);
      return {
        async next() {
          const { done, value } = await events.next();
          if (done) return { kind: "done" };
          return value?.ending ? { kind: "ending", ending: value.ending } : { kind: "event", payload: value, key: null };
        },
        async cleanup() { ${more} },
      };
    },
  };
}
globalThis.keep = [globalThis.keep, ${name}];
`;
}

const KEEPER = 0;
const KEEPER_TEXT = triggerText(
  "keeper",
  'host.log("info", "up"); await new Promise((end) => host.abort.addEventListener("abort", end)); yield 0;',
);

export class RunnerUnderTest {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "tradewind-triggers-")));
  readonly reports: Report[] = [];
  readonly runner: TriggerRunner;
  readonly #waiting = new Set<() => void>();
  #bundles = 0;

  private constructor(options: Partial<TriggerRunnerOptions>) {
    const engine = (message: string, fields?: object): void => {
      this.#receive({ on: "engine", message, text: JSON.stringify(fields ?? {}) });
    };
    const logger: Logger = { ...silentLogger, warn: engine, error: engine };
    this.runner = new TriggerRunner({ services: SERVICES, logger, ...options });
  }

  static async start(options: Partial<TriggerRunnerOptions> = {}): Promise<RunnerUnderTest> {
    const under = new RunnerUnderTest(options);
    onTestFinished(async () => {
      await under.runner.close(500);
      rmSync(under.dir, { recursive: true, force: true });
    });
    const up = Promise.withResolvers<void>();
    await under.runner.start({
      outcome: (id, outcome) => under.#receive({ on: "outcome", id, outcome }),
      log: (id, level, message, fields) => {
        if (id === KEEPER) up.resolve();
        else under.#receive({ on: "log", id, level, message, ...(fields && { fields }) });
      },
      polled: (id) => under.#receive({ on: "polled", id }),
      ceased: (id) => under.#receive({ on: "ceased", id }),
      members: (id, fired) => under.#receive({ on: "members", id, fired }),
      blocked: (stall) => under.#receive({ on: "blocked", stall }),
      ignoredAbort: (ignored) => under.#receive({ on: "ignoredAbort", ignored }),
    });
    // The child process exists only while a trigger runs.
    under.run(KEEPER, "keeper", await under.bundle(KEEPER_TEXT));
    await up.promise;
    return under;
  }

  /** Bundles `text` as a DAG file next to `files`; returns the path of the bundle. */
  async bundle(text: string, files: Readonly<Record<string, string>> = {}): Promise<string> {
    const folder = join(this.dir, `dags-${++this.#bundles}`);
    for (const [file, content] of Object.entries({ "dag.js": text, ...files })) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), content);
    }
    const source = { file: "dag.js", path: join(folder, "dag.js"), text };
    const { hash, banner, sharedChunks, body } = await buildArtefact(folder, source, this.#bundles);
    const path = join(this.dir, `${hash}.mjs`);
    writeFileSync(path, banner + sharedChunks.map(({ code }) => code).join("") + body);
    return path;
  }

  run(id: number, kind: string, bundlePath: string | null, args: Json = {}): void {
    this.runner.run([{ id, kind, args, bundlePath }]);
  }

  outcomes(id: number): TriggerOutcome[] {
    return this.reports.flatMap((each) => (each.on === "outcome" && each.id === id ? [each.outcome] : []));
  }

  logs(id: number): string[] {
    return this.reports.flatMap((each) => (each.on === "log" && each.id === id ? [each.message] : []));
  }

  async outcome(id: number, nth = 1): Promise<TriggerOutcome> {
    await this.until(() => this.outcomes(id).length >= nth);
    return this.outcomes(id)[nth - 1] as TriggerOutcome;
  }

  /** The payload of its nth event. */
  async event(id: number, nth = 1): Promise<Json> {
    const outcome = await this.outcome(id, nth);
    if (outcome.kind !== "event") throw new Error(`trigger ${id}: ${JSON.stringify(outcome)}`);
    return outcome.payload;
  }

  async failure(id: number): Promise<ErrorFacts> {
    const outcome = await this.outcome(id, this.outcomes(id).length || 1);
    if (outcome.kind !== "failed") throw new Error(`trigger ${id}: ${JSON.stringify(outcome)}`);
    return outcome.error;
  }

  /** The first matching report, past or future. */
  async reported<T extends Report["on"]>(
    on: T,
    matches: (each: Extract<Report, { on: T }>) => boolean = () => true,
  ): Promise<Extract<Report, { on: T }>> {
    const find = () => this.reports.find((each) => each.on === on && matches(each as never));
    await this.until(() => find() !== undefined);
    return find() as Extract<Report, { on: T }>;
  }

  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #receive(report: Report): void {
    this.reports.push(report);
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

export const PASSWORD = "hunter2-hunter2";

export const SERVICES: TriggerServices = {
  variable: async (key) => {
    if (key === "broken") throw new Error("connection to postgres://user:secret@db failed");
    return { plain: "a value" }[key];
  },
  connection: async (id) => ({
    id,
    type: "http",
    host: "example.org",
    port: null,
    login: "user",
    password: PASSWORD,
    schema: null,
    extra: {},
  }),
};
