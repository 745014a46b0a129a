/** A database with a few DAGs and the API on top, for tests of the API. */

import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DagManifest, Json, TaskManifest } from "@tradewind/sdk/manifest";
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from "fastify";
import { createApi } from "../../src/api/server/api.ts";
import type { ApiOptions, Change } from "../../src/api/server/context.ts";
import { answerFrom } from "../../src/execute/attempt/answer-request.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import type { LogStore } from "../../src/log/log-store.ts";
import { LargeOutputs } from "../../src/output/large-outputs.ts";
import { passOn } from "../../src/process/api.ts";
import { fetchBundle } from "../../src/process/parts/fetch-bundle.ts";
import { taskServices } from "../../src/run/dispatch/task-services.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { ensureAdminToken } from "../../src/store/access/tokens.ts";
import { adhoc, type Database } from "../../src/store/database/database.ts";
import { registerObject } from "../../src/store/output/output-objects.ts";
import { checkEngineTrigger } from "../../src/trigger/engine/engine-triggers.ts";
import { dagManifest, taskManifest } from "../reference/manifests.ts";
import { afterFile } from "../support/after-file.ts";
import { testDatabase } from "../support/test-database.ts";

export class Installation {
  readonly app: FastifyInstance;
  readonly options: ApiOptions;
  /** The folder of the logs, unless another store was given. */
  readonly logsDir: string;
  readonly token: string;
  readonly changes: Change[];
  readonly wakeUps: WakeUps;

  constructor(parts: {
    app: FastifyInstance;
    options: ApiOptions;
    logsDir: string;
    token: string;
    changes: Change[];
    wakeUps: WakeUps;
  }) {
    this.app = parts.app;
    this.options = parts.options;
    this.logsDir = parts.logsDir;
    this.token = parts.token;
    this.changes = parts.changes;
    this.wakeUps = parts.wakeUps;
  }

  /** `beside`: the API of that database, which wakes its services as a server does. */
  static async open(
    given: {
      readonly logs?: LogStore;
      readonly beside?: { readonly db: Database; readonly wakeUps: WakeUps };
    } = {},
  ): Promise<Installation> {
    const { beside } = given;
    const { db } = beside ?? (await testDatabase());
    const token = `tw_${randomBytes(32).toString("base64url")}`;
    await ensureAdminToken(db, token);
    const logsDir = await mkdtemp(join(tmpdir(), "tw-api-logs-"));
    const logs = given.logs ?? new LogFolder(logsDir);
    const changes: Change[] = [];
    const wakeUps = new WakeUps(db);
    const secretBox = new SecretBox([randomBytes(32)]);
    const outputs = new LargeOutputs({
      store: "file:",
      folder: join(logsDir, ".outputs"),
      limits: { inline: 65_536, most: 4 * 1024 * 1024 },
      register: (object) => registerObject(db, object),
    });
    const options: ApiOptions = {
      database: db,
      logger: silentLogger,
      config: { host: "127.0.0.1", port: 0, version: "0.1.0-test" },
      secretBox,
      execution: {
        answer: answerFrom(taskServices({ database: db, secretBox, check: checkEngineTrigger })),
        fetchBundle: (hash) => fetchBundle(db, hash),
        outputs,
      },
      logs,
      wakeUps,
      notify: (change) => {
        if (beside !== undefined) passOn(change, beside.wakeUps);
        // Sent with every change through the API; schedulers do not need it.
        if (change.kind === "deed_done") return wakeUps.send("states");
        changes.push(change);
        if (change.kind === "signals_sent") wakeUps.send("signals");
        if (change.kind === "worker_changed") wakeUps.send("assignments");
      },
    };
    const app = await createApi(options);
    opened.push(async () => {
      await app.close();
      await outputs.close();
      await wakeUps.close();
      await rm(logsDir, { recursive: true, force: true });
    });
    return new Installation({ app, options, logsDir, token, changes, wakeUps });
  }

  get database(): Database {
    return this.options.database;
  }

  /** A request with the admin's token; `path` is below /api/v2, or begins with /ui/. */
  call(
    method: InjectOptions["method"],
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<LightMyRequestResponse> {
    return this.app.inject({
      method,
      url: /^\/(?:api|ui)\//.test(path) ? path : `/api/v2${path}`,
      headers: { authorization: `Bearer ${this.token}`, ...headers },
      ...(body === undefined ? {} : { payload: body as object }),
    });
  }

  async sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.database.rows<R>(adhoc(text), values);
  }

  /** Publishes a version of a DAG; returns its version id. */
  async addDag(
    manifest: DagManifest,
    source = "export default dag();",
    hash = randomBytes(16).toString("hex"),
  ): Promise<number> {
    await this.sql("INSERT INTO bundle (hash, code) VALUES ($1, 'code')", [hash]);
    await this.sql(
      "INSERT INTO dag (dag_id, file, is_paused) VALUES ($1, $2, false) ON CONFLICT DO NOTHING",
      [manifest.dagId, `${manifest.dagId}.ts`],
    );
    const [version] = await this.sql<{ id: number }>(
      `INSERT INTO dag_version (dag_id, number, bundle_hash, manifest, source)
       VALUES ($1, (SELECT count(*) + 1 FROM dag_version WHERE dag_id = $1), $2, $3, $4) RETURNING id`,
      [manifest.dagId, hash, JSON.stringify(manifest), source],
    );
    await this.sql("UPDATE dag SET version_id = $2 WHERE dag_id = $1", [manifest.dagId, version!.id]);
    return version!.id;
  }

  async addRun(dagId: string, run: Partial<RunSeed> = {}): Promise<number> {
    const runId = run.runId ?? `manual__${randomBytes(4).toString("hex")}`;
    const [row] = await this.sql<{ id: number }>(
      `INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, conf, version_id, triggered_by, started_at, ended_at, run_after)
       SELECT dag_id, $2, 'manual', $3, $4, $5, version_id, 'rest_api', $6, $7, $8 FROM dag WHERE dag_id = $1 RETURNING id`,
      [
        dagId,
        runId,
        run.state ?? "running",
        run.logicalDate ?? null,
        JSON.stringify(run.conf ?? {}),
        run.startedAt ?? null,
        run.endedAt ?? null,
        run.runAfter ?? new Date(),
      ],
    );
    return row!.id;
  }

  async addInstance(dagRunId: number, taskId: string, instance: Partial<InstanceSeed> = {}): Promise<void> {
    await this.sql(
      `INSERT INTO task_instance (dag_run_id, task_id, map_index, state, try_number, max_tries, attempt, pool, pool_slots,
                                  limit_key, queue, priority_weight, operator, started_at, ended_at, retry_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, 'default', 1, 'task', $10, $11, $12)`,
      [
        dagRunId,
        taskId,
        instance.mapIndex ?? -1,
        instance.state ?? "pending",
        instance.tryNumber ?? 0,
        instance.maxTries ?? 0,
        instance.attempt ?? null,
        instance.pool ?? "default_pool",
        instance.limitKey ?? null,
        instance.startedAt ?? null,
        instance.endedAt ?? null,
        instance.retryAt ?? null,
      ],
    );
  }

  async addJob(kind: string, leaseSeconds = 60): Promise<void> {
    await this.sql(
      `INSERT INTO job (kind, hostname, pid, version, lease_until) VALUES ($1, 'host-1', 4711, '0.1.0', now() + make_interval(secs => $2))`,
      [kind, leaseSeconds],
    );
  }

  /** Writes lines to an attempt's log; returns its path. */
  async writeLog(
    place: { dagId: string; dagRunId: number; taskId: string; file: string },
    messages: readonly string[],
  ): Promise<string> {
    const folder = join(this.logsDir, place.dagId, String(place.dagRunId), place.taskId, "-1");
    await mkdir(folder, { recursive: true });
    const path = join(folder, place.file);
    await writeFile(path, messages.map(logLine).join(""));
    return path;
  }
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});

export function logLine(message: string): string {
  return `${JSON.stringify({ t: "2026-01-01T00:00:00.000Z", level: "info", source: "task", message })}\n`;
}

interface RunSeed {
  readonly runId: string;
  readonly state: string;
  readonly logicalDate: Date;
  readonly conf: Json;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly runAfter: Date;
}

interface InstanceSeed {
  readonly mapIndex: number;
  readonly state: string;
  readonly tryNumber: number;
  readonly maxTries: number;
  readonly attempt: string;
  readonly pool: string;
  readonly limitKey: string;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly retryAt: Date;
}

export function manifestOf(
  dagId: string,
  tasks: readonly Partial<TaskManifest>[],
  dag: Partial<DagManifest> = {},
): DagManifest {
  const facts = { dagId, description: `About ${dagId}`, owner: "ada", ...dag };
  return dagManifest(
    tasks.map((task) => taskManifest(task.taskId ?? "task", { retryDelayMs: 300_000, ...task })),
    facts,
  );
}
