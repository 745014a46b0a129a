/**
 * An installation as separate processes: API, DAG processor, schedulers, triggerers, connected by the database only. Leases
 * are renewed rarely, and no component polls: an effect without a wake-up does not happen.
 */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DagProcessor } from "../../src/bundle/dag-processor.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { planNext } from "../../src/model/calendar/planner.ts";
import { createApi } from "../../src/process/api.ts";
import { createBackfillHost } from "../../src/process/backfill.ts";
import { createNoticeHost } from "../../src/process/notices.ts";
import { openLogs } from "../../src/process/parts/log-store.ts";
import type { ServiceParts } from "../../src/process/parts/service-parts.ts";
import { createScheduler } from "../../src/process/scheduler.ts";
import { createTriggerer } from "../../src/process/triggerer.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { newToken, openHome } from "../../src/service/home.ts";
import { createLogger, silentLogger } from "../../src/service/logger.ts";
import { ensureAdminToken } from "../../src/store/access/tokens.ts";
import { adhoc, Database } from "../../src/store/database/database.ts";
import { afterFile } from "./after-file.ts";
import { testDatabase } from "./test-database.ts";

/** No renewal, and so no sweep, during a test. */
const RARELY = { ttlMs: 1_200_000, renewMs: 600_000, marginMs: 1_000 };
const NEVER_MS = 600_000;
/** Long for a busy machine, far shorter than any sweep. */
const SOON_MS = 5_000;

interface SplitOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly homes?: boolean;
}

export interface SplitProcess {
  stop(): Promise<void>;
}

export class SplitRig {
  readonly db: Database;
  readonly root: string;
  readonly #url: string;
  readonly #token: string;
  readonly #options: SplitOptions;
  readonly #running = new Set<SplitProcess>();
  readonly #secretBox = new SecretBox([Buffer.alloc(32, 7)]);
  #processes = 0;
  #api = "";

  /** @param options `settings` of all processes; `homes`: each process has its own, as on another machine. */
  static async open(options: SplitOptions = {}): Promise<SplitRig> {
    const { db, url } = await testDatabase();
    const root = await mkdtemp(join(tmpdir(), "tradewind-split-"));
    await mkdir(join(root, "dags"));
    const token = newToken();
    await ensureAdminToken(db, token);
    const rig = new SplitRig({ db, url, root, token, options });
    opened.push(rig);
    return rig;
  }

  private constructor(parts: {
    db: Database;
    url: string;
    root: string;
    token: string;
    options: SplitOptions;
  }) {
    this.db = parts.db;
    this.root = parts.root;
    this.#url = parts.url;
    this.#token = parts.token;
    this.#options = parts.options;
  }

  /** The parts of a separate process. */
  async #parts(settings: Record<string, string> = {}): Promise<ServiceParts> {
    const { homes = false } = this.#options;
    const home = join(this.root, homes ? `home-${++this.#processes}` : "home");
    const config = resolveConfig(
      { home, port: 0, parallelism: 4, databaseUrl: this.#url },
      { TRADEWIND_STOP_GRACE_MS: "0", ...this.#options.settings, ...settings },
    );
    const database = Database.connect(this.#url);
    const logger = process.env.TRADEWIND_TEST_LOG ? createLogger({ level: "debug" }) : silentLogger;
    return {
      config,
      database,
      home: await openHome(home),
      logger,
      logs: await openLogs(config),
      secretBox: this.#secretBox,
      wakeUps: new WakeUps(database),
    };
  }

  /** The parts stop in this order. */
  #started(
    parts: ServiceParts,
    services: readonly { stop(graceMs?: number): Promise<void> }[],
  ): SplitProcess {
    const process: SplitProcess = {
      stop: async () => {
        if (!this.#running.delete(process)) return;
        for (const service of services) await service.stop(0);
        await parts.logs.close();
        await parts.wakeUps.close();
        await parts.database.close();
      },
    };
    this.#running.add(process);
    return process;
  }

  async api(): Promise<SplitProcess> {
    const parts = await this.#parts();
    const { api, close } = await createApi(parts);
    await api.start();
    this.#api = api.url;
    return this.#started(parts, [api, { stop: close }]);
  }

  async processor(): Promise<SplitProcess> {
    const parts = await this.#parts();
    const processor = new DagProcessor({
      database: parts.database,
      folder: join(this.root, "dags"),
      logger: parts.logger,
      plan: planNext,
      isPausedAtCreation: false,
      rescanMs: NEVER_MS,
      children: 1,
    });
    await processor.start();
    return this.#started(parts, [processor]);
  }

  /** With the hosts of backfills and deadlines next to each scheduler. */
  async scheduler(options: { readonly parallelism?: number } = {}): Promise<SplitProcess> {
    const parts = await this.#parts({ TRADEWIND_PARALLELISM: `${options.parallelism ?? 4}` });
    const scheduler = createScheduler({ ...parts, lease: RARELY });
    const services = [
      scheduler,
      createBackfillHost(parts, { lookMs: NEVER_MS, lease: RARELY }),
      createNoticeHost(parts, scheduler, { times: { lookMs: NEVER_MS } }),
    ];
    for (const service of services) await service.start();
    return this.#started(parts, services.toReversed());
  }

  async triggerer(): Promise<SplitProcess> {
    const parts = await this.#parts();
    const triggerer = createTriggerer({ ...parts, times: { lease: RARELY } });
    await triggerer.start();
    return this.#started(parts, [triggerer]);
  }

  /** Saves DAG files; the DAG processor finds them. */
  async save(files: Readonly<Record<string, string | null>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.root, "dags", name);
      if (text === null) await rm(path);
      else await writeFile(path, text);
    }
  }

  async saved(files: Readonly<Record<string, string>>, dagIds: readonly string[]): Promise<void> {
    await this.save(files);
    const sql = "SELECT FROM dag WHERE dag_id = ANY($1) AND version_id IS NOT NULL";
    await this.until(async () => {
      const errors = await this.rows("SELECT * FROM import_error");
      if (errors.length > 0) throw new Error(JSON.stringify(errors));
      return (await this.rows(sql, [dagIds])).length === dagIds.length;
    }, `the DAGs ${dagIds}`);
  }

  /** Calls the API; `path` is relative to /api/v2. */
  async call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await this.fetch(method, path, body);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  }

  fetch(method: string, path: string, body?: unknown, token = this.#token): Promise<Response> {
    return fetch(`${this.#api}/api/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  /** Returns its run id and its id in the database. */
  async trigger(dagId: string, body: Record<string, unknown> = {}): Promise<{ id: number; runId: string }> {
    const made = await this.call("POST", `/dags/${dagId}/dagRuns`, { logical_date: null, ...body });
    const runId = `${made.dag_run_id}`;
    const sql = "SELECT id FROM dag_run WHERE dag_id = $1 AND run_id = $2";
    const [row] = await this.rows<{ id: number }>(sql, [dagId, runId]);
    return { id: row?.id ?? 0, runId };
  }

  rows<R>(sql: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.db.rows<R>(adhoc(sql), values);
  }

  /** Waits until the query returns a row. */
  async is(sql: string, values: readonly unknown[] = []): Promise<void> {
    await this.until(async () => (await this.rows(sql, values)).length > 0, `${sql} with ${values}`);
  }

  runIs(id: number, state: string): Promise<void> {
    return this.is("SELECT FROM dag_run WHERE id = $1 AND state = $2", [id, state]);
  }

  taskIs(id: number, task: string, state: string): Promise<void> {
    return this.is("SELECT FROM task_instance WHERE dag_run_id = $1 AND task_id = $2 AND state = $3", [
      id,
      task,
      state,
    ]);
  }

  async until(holds: () => Promise<boolean> | boolean, what: string, withinMs = SOON_MS): Promise<void> {
    const end = performance.now() + withinMs;
    while (!(await holds())) {
      if (performance.now() > end) throw new Error(`did not happen within ${withinMs} ms: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running].map((each) => each.stop()));
    await rm(this.root, { recursive: true, force: true });
  }
}

const opened: SplitRig[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((rig) => rig.close()));
});
