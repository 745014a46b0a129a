/** Dependencies of every API resource. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { BundleText } from "../../code/bundle-text.ts";
import type { AnswerRequest } from "../../execute/contract.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import type { LogStore } from "../../log/log-store.ts";
import type { LargeOutputs } from "../../output/large-outputs.ts";
import type { TimetableDates } from "../../plan/timetable-dates.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import type { Logger } from "../../service/logger.ts";
import type { SignalService } from "../../signal/signal-service.ts";
import type { Database } from "../../store/database/database.ts";
import type { OutputReader } from "../task/shown-output.ts";

interface ApiConfig {
  readonly host: string;
  readonly port: number;
  /** The public URL of this API, without a trailing slash. */
  readonly publicUrl?: string | undefined;
  /** The version of Tradewind, as returned by `GET /version`. */
  readonly version: string;
}

export interface ApiOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly config: ApiConfig;
  readonly secretBox: SecretBox;
  /** Read only below folders of existing rows. Closed by the caller. */
  readonly logs: LogStore;
  /** Reads large outputs; without it only their metadata is shown. Closed by the caller. */
  readonly outputs?: OutputReader | undefined;
  /** Lists the dates of custom timetables for backfills; without it such backfills are rejected. Stopped by the caller. */
  readonly timetables?: Pick<TimetableDates, "list"> | undefined;
  /** For waiters for the end of a run. */
  readonly wakeUps: Pick<WakeUps, "listen" | "onLocal" | "wantStates">;
  /** The configured signal service; by default one on `database`. Closed by the caller. */
  readonly signals?: SignalService | undefined;
  /** The build of the web UI; by default the one of this installation. */
  readonly webFolder?: string | undefined;
  /** Serves the task execution API. Left out: it is not served. */
  readonly execution?: ExecutionParts | undefined;
  /** Called after the commit of a change that concerns schedulers; must not throw. */
  readonly notify: (change: Change) => void;
}

/** What the task execution API needs besides the database. */
interface ExecutionParts {
  readonly answer: AnswerRequest;
  /** Closed by the caller. */
  readonly outputs: Pick<LargeOutputs, "draft" | "keep" | "limits" | "open">;
  readonly fetchBundle: (hash: string) => Promise<BundleText>;
  /** A worker is lost when it has sent no heartbeat for this long. */
  readonly workerLeaseMs?: number | undefined;
}

export type Change =
  | { readonly kind: "run_created" | "run_edited" | "run_deleted"; readonly dagRunIds: readonly number[] }
  | { readonly kind: "dag_changed"; readonly dagIds: readonly string[] }
  | { readonly kind: "backfill_changed"; readonly backfillId: number }
  | { readonly kind: "pool_changed"; readonly pool: string }
  | { readonly kind: "signal_sent"; readonly key: string }
  | { readonly kind: "approval_answered"; readonly dagRunId: number }
  /** A worker was drained or removed: its held heartbeat has to be answered. */
  | { readonly kind: "worker_changed"; readonly workerId: number }
  /** An action was recorded in the audit log. */
  | { readonly kind: "deed_done" }
  | { readonly kind: "signals_sent" };

export type ApiApp = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** Registers the routes of one resource. */
export type Resource = (app: ApiApp, options: ApiOptions) => void;
