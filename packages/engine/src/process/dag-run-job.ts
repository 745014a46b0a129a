/**
 * The public API of a `DagRunJob`: a user's own scheduler or batch driver. See docs/guides/drivers.md.
 *
 * It brings its own executor: tasks of the submitted runs run on this machine, in child processes without credentials,
 * like those of a scheduler.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import type { Json } from "@tradewind/sdk/manifest";
import { ParamsCheck } from "../api/dag/params-check.ts";
import { WakeUps } from "../job/wake-up.ts";
import { SubmittedRunsJob } from "../run/job/submitted-runs-job.ts";
import { SecretBox } from "../secret/secret-box.ts";
import { type Config, resolveConfig } from "../service/config.ts";
import { EngineError, messageOf } from "../service/errors.ts";
import { findStandalone, homeAt, openHome } from "../service/home.ts";
import { createLogger, type LogLevel } from "../service/logger.ts";
import type { Database } from "../store/database/database.ts";
import { requireSchema } from "../store/database/migrate.ts";
import { findDag } from "../store/list/dags.ts";
import { findRuns, type SubmittedRun, type SubmittedState } from "../store/run/submitted-runs.ts";
import { checkedRuns, checkOptions } from "./dag-run-job-input.ts";
import { openLogs } from "./parts/log-store.ts";
import { openDatabase } from "./parts/open-database.ts";
import { type ServiceParts, stopServices } from "./parts/service-parts.ts";
import { prepareUserCode } from "./parts/user-code.ts";
import { runDriverOptions } from "./run-driver.ts";

/**
 * Where a `DagRunJob` works, and how much it runs at once.
 *
 * @example
 * const options: DagRunJobOptions = { home: "/srv/tradewind", maxActive: 8 };
 */
export interface DagRunJobOptions {
  /** The database of the installation. Default: `DATABASE_URL`, or the database of the standalone that runs on `home`. */
  readonly databaseUrl?: string;
  /** Folder for logs, code and the secret key. Default: `TRADEWIND_HOME`, or `.tradewind`. */
  readonly home?: string;
  /** How many of the submitted runs may be active at once. Default: as many as `maxActiveRuns` of each DAG allows. */
  readonly maxActive?: number;
  /** How many tasks may run at once. Default: `TRADEWIND_PARALLELISM`. */
  readonly parallelism?: number;
  /** The level of its log on stderr. Default: `TRADEWIND_LOG_LEVEL`, or "warn". */
  readonly logLevel?: LogLevel;
}

/**
 * A run to submit: an existing run, by its id, or a run to create.
 *
 * @example
 * const runs: RunRequest[] = [
 *   { dagId: "sales", runId: "scheduled__2026-01-31T00:00:00.000Z" },
 *   { dagId: "sales", logicalDate: new Date("2026-02-01"), conf: { region: "eu" } },
 * ];
 */
export type RunRequest =
  | { readonly dagId: string; readonly runId: string }
  | {
      readonly dagId: string;
      /** If the date already has a run, that run is submitted, in any state. */
      readonly logicalDate?: Date;
      /** Default: begins and ends at the logical date. */
      readonly dataInterval?: { readonly start: Date; readonly end: Date };
      readonly conf?: { readonly [key: string]: Json };
    };

/**
 * A submitted run that has ended, with any owner.
 *
 * @example
 * for await (const run of job.collect()) console.log(run.runId, run.state, run.reason);
 */
export interface EndedRun {
  readonly dagId: string;
  readonly runId: string;
  readonly state: "success" | "failed";
  readonly logicalDate: Date | null;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /** Why it failed, if known. */
  readonly reason: string | null;
}

/**
 * The progress of the submitted runs.
 *
 * @example
 * const { finished, total, percent } = job.progress();
 * console.log(`${finished} of ${total} (${percent} %)`);
 */
export interface RunProgress {
  /** Submitted runs, without withdrawn ones. */
  readonly total: number;
  /** Not started yet. */
  readonly waiting: number;
  readonly running: number;
  readonly success: number;
  readonly failed: number;
  /** `success` and `failed` together. */
  readonly finished: number;
  /** Percentage of `total`, rounded down: 100 only when all have ended. */
  readonly percent: number;
}

/**
 * Drives the runs that a program submits: owns them, runs their tasks on this machine, and reports their ends.
 *
 * @example
 * const job = await DagRunJob.open({ maxActive: 8 });
 * await job.submit([{ dagId: "sales", logicalDate: new Date("2026-01-31") }]);
 * for await (const run of job.collect()) console.log(run.runId, run.state);
 * await job.close();
 */
export class DagRunJob {
  readonly #parts: ServiceParts;
  readonly #job: SubmittedRunsJob;
  readonly #disconnect: () => Promise<void>;
  readonly #ended: EndedRun[] = [];
  readonly #params = new ParamsCheck();
  #counts = { success: 0, failed: 0 };
  #bell = Promise.withResolvers<void>();
  #closing: Promise<void> | null = null;

  /**
   * Connects to the database and starts.
   *
   * @example
   * const job = await DagRunJob.open({ databaseUrl: "postgresql://db.example.com/tradewind", maxActive: 8 });
   */
  static async open(options: DagRunJobOptions = {}): Promise<DagRunJob> {
    checkOptions(options);
    const { databaseUrl, home, logLevel, maxActive, parallelism } = options;
    const quiet = process.env.TRADEWIND_LOG_LEVEL ? undefined : "warn";
    const flags = { databaseUrl, home, logLevel: logLevel ?? quiet, parallelism };
    const config = resolveConfig(flags, process.env);
    const { database, parts, stop } = await openParts(config);
    const job = new DagRunJob(parts, maxActive, async () => {
      parts.wakeUps.close();
      await stop();
    });
    try {
      await requireSchema(database);
      await job.#job.start();
      return job;
    } catch (error) {
      await job.#disconnect();
      throw error;
    }
  }

  private constructor(parts: ServiceParts, maxActive: number | undefined, disconnect: () => Promise<void>) {
    this.#parts = parts;
    this.#disconnect = disconnect;
    this.#job = new SubmittedRunsJob({
      ...runDriverOptions(parts),
      // A scheduler may run beside it and keeps its own runs.
      isAlone: false,
      fromAny: parts.config.databaseUrl !== undefined,
      maxActive: maxActive ?? Number.POSITIVE_INFINITY,
      onEnded: (_, state) => this.#report(state),
      onChange: () => this.#ring(),
    });
  }

  /**
   * Submits runs: they start in this order, as soon as the limits allow. Rejects, and submits none, if a run is invalid, a
   * DAG or a run does not exist, or a conf does not match the params of its DAG.
   *
   * @example
   * await job.submit([{ dagId: "sales", logicalDate: new Date("2026-01-31"), conf: { region: "eu" } }]);
   */
  async submit(runs: Iterable<RunRequest>): Promise<void> {
    if (this.#closing)
      throw new EngineError("DAG_RUN_JOB_CLOSED", "This DagRunJob is closed. Open another to submit runs.");
    const requests = checkedRuns(runs);
    await this.#checkNew(requests.filter((run) => !("runId" in run)));
    const existing = requests.filter((run) => "runId" in run);
    const found = await findRuns(this.#parts.database, existing);
    const ids = new Map(found.map(({ dagId, id, runId }) => [`${dagId}/${runId}`, id]));
    const missing = existing.find(({ dagId, runId }) => !ids.has(`${dagId}/${runId}`));
    if (missing)
      throw new EngineError(
        "DAG_RUN_UNKNOWN",
        `DAG "${missing.dagId}" has no run "${missing.runId}". Leave the runId out to create one.`,
      );
    await this.#job.submit(
      requests.map((run) => submitted(run, "runId" in run ? ids.get(`${run.dagId}/${run.runId}`)! : null)),
    );
  }

  /**
   * Yields runs as they end. The iteration ends when all submitted runs have ended, with their callbacks, or after
   * `close()`. More runs may be submitted meanwhile; a later call continues where an earlier one stopped.
   *
   * @example
   * for await (const run of job.collect()) if (run.state === "failed") await job.withdraw();
   */
  async *collect(): AsyncGenerator<EndedRun, void, void> {
    for (;;) {
      const next = this.#ended.shift();
      if (next) yield next;
      else if (this.#job.isIdle || this.#closing) return;
      else await this.#bell.promise;
    }
  }

  /**
   * The progress of the submitted runs, as of the last change that this job has received.
   *
   * @example
   * console.log(`${job.progress().percent} %`);
   */
  progress(): RunProgress {
    const { success, failed } = this.#counts;
    const { active: running, waiting } = this.#job;
    const finished = success + failed;
    const total = finished + running + waiting;
    const percent = total === 0 ? 100 : Math.floor((finished / total) * 100);
    return { total, waiting, running, success, failed, finished, percent };
  }

  /**
   * Withdraws the runs that have not started. Active runs continue.
   *
   * @example
   * if (run.state === "failed") await job.withdraw();
   */
  async withdraw(): Promise<void> {
    await this.#job.withdraw();
    this.#ring();
  }

  /**
   * Stops. Running tasks get the grace period, then a scheduler takes over the runs that have not ended. Runs that have
   * not started are withdrawn.
   *
   * @example
   * process.once("SIGTERM", () => void job.close());
   */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      try {
        await stopServices([this.#job], this.#parts);
      } finally {
        this.#ring();
        await this.#disconnect();
      }
    })();
    return this.#closing;
  }

  /** One query per DAG. */
  async #checkNew(runs: readonly { readonly dagId: string; readonly conf?: Json }[]): Promise<void> {
    for (const [dagId, requests] of Map.groupBy(runs, (run) => run.dagId)) {
      const dag = await findDag(this.#parts.database, dagId);
      if (dag === undefined || dag.is_stale || dag.version_id === null)
        throw new EngineError(
          "DAG_RUN_DAG_UNKNOWN",
          `There is no DAG "${dagId}" that could be run. Check its id, and that its file is in the DAG folder and loads.`,
        );
      for (const { conf = {} } of requests) {
        try {
          this.#params.check({ id: dag.version_id, schema: dag.manifest?.paramsSchema ?? null }, conf);
        } catch (error) {
          const message = `The conf does not fit the params of DAG "${dagId}": ${messageOf(error)}.`;
          throw new EngineError("DAG_RUN_CONF_INVALID", message, { cause: error });
        }
      }
    }
  }

  #report({ dagId, endReason, endedAt, logicalDate, runId, startedAt, state }: SubmittedState): void {
    const end = state === "success" ? state : "failed";
    this.#counts = { ...this.#counts, [end]: this.#counts[end] + 1 };
    this.#ended.push({ dagId, runId, state: end, logicalDate, startedAt, endedAt, reason: endReason });
    this.#ring();
  }

  #ring(): void {
    this.#bell.resolve();
    this.#bell = Promise.withResolvers();
  }
}

/** The id of a new run is chosen here, so that the run can be found if the answer to its creation is lost. */
function submitted(run: RunRequest, id: number | null): SubmittedRun {
  if ("runId" in run)
    return { dagId: run.dagId, runId: run.runId, id, logicalDate: null, interval: null, conf: {} };
  const { conf = {}, dagId, dataInterval: interval = null, logicalDate = null } = run;
  const name = logicalDate?.toISOString() ?? `${new Date().toISOString()}_${randomBytes(4).toString("hex")}`;
  return { dagId, runId: `manual__${name}`, id, logicalDate, interval, conf };
}

async function openParts(
  config: Config,
): Promise<{ readonly database: Database; readonly parts: ServiceParts; stop(): Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  // Before the home is opened, which would create the folder.
  if (config.databaseUrl === undefined) await requireStandalone(config.home);
  const home = await openHome(config.home);
  const user = await prepareUserCode({ config, home, logger });
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  const { database, stop } = await openDatabase(config, { applicationName: "tradewind driver" });
  const wakeUps = new WakeUps(database);
  const logs = await openLogs(config);
  return {
    database,
    parts: { config, database, home, logger, logs, secretBox, wakeUps, user },
    stop: async () => {
      await logs.close();
      await stop();
    },
  };
}

async function requireStandalone(path: string): Promise<void> {
  if ((await findStandalone(homeAt(path))) !== undefined) return;
  const obstacle = existsSync(path)
    ? `no standalone runs on the home ${path}`
    : `the home ${path} does not exist`;
  throw new EngineError(
    "DAG_RUN_JOB_NO_DATABASE",
    `There is no database to work on: neither databaseUrl nor DATABASE_URL is set, and ${obstacle}. Set one of them, correct the home, or start "tradewind standalone --home ${path}".`,
  );
}
