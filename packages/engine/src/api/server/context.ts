/** What every resource of the API is given. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { WakeUps } from "../../job/wake-up.ts";
import type { TimetableDates } from "../../plan/timetable-dates.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import type { Logger } from "../../service/logger.ts";
import type { SignalService } from "../../signal/signal-service.ts";
import type { Database } from "../../store/database/database.ts";
import type { OutputReader } from "../task/shown-output.ts";

interface ApiConfig {
  readonly host: string;
  readonly port: number;
  /** How others reach this API, without a slash at the end. */
  readonly publicUrl?: string | undefined;
  /** Of Tradewind, as `GET /version` tells it. */
  readonly version: string;
}

export interface ApiOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly config: ApiConfig;
  readonly secretBox: SecretBox;
  /** `<home>/logs`: only ever read, and only below folders of rows that exist. */
  readonly logsDir: string;
  /** Reads large outputs; without it only what is known of them is shown. Whoever gives it closes it. */
  readonly outputs?: OutputReader | undefined;
  /** Lists the dates of timetables, for backfills; without it there are none of such DAGs. Whoever gives it stops it. */
  readonly timetables?: Pick<TimetableDates, "list"> | undefined;
  /** For those who wait for a run to end. */
  readonly wakeUps: Pick<WakeUps, "listen" | "onLocal" | "wantStates">;
  /** The one of the configuration; on `database` unless given. Whoever gives it closes it. */
  readonly signals?: SignalService | undefined;
  /** Called after the commit of a change a scheduler may want to know of; it must not throw. */
  readonly notify: (change: Change) => void;
}

export type Change =
  | { readonly kind: "run_created" | "run_edited" | "run_deleted"; readonly dagRunIds: readonly number[] }
  | { readonly kind: "dag_changed"; readonly dagIds: readonly string[] }
  | { readonly kind: "backfill_changed"; readonly backfillId: number }
  | { readonly kind: "pool_changed"; readonly pool: string }
  | { readonly kind: "signal_sent"; readonly key: string }
  /** Something was done that is on the audit log, whatever it was. */
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
