/** The functions of the surrounding process that tasks and triggers share. */

import { TaskError } from "../check/errors.ts";
import type { Connection, TaskLog } from "./context.ts";
import { logFields } from "./log-fields.ts";
import type { LogLevel, TaskHost } from "./program.ts";

/** The part of a host that tasks and triggers share. */
type ServiceHost = Pick<TaskHost, "log" | "variable" | "connection">;

/**
 * Log, variables and connections: the part of the context that tasks and triggers share.
 * @example const apiUrl = (ctx: Services) => ctx.variable("api_url", "http://localhost");
 */
export interface Services {
  readonly log: TaskLog;
  /** Reads a stored variable; rejects if it is not set and there is no default. */
  variable(key: string, defaultValue?: string): Promise<string>;
  /** Reads a stored connection; rejects if it does not exist. */
  connection(id: string): Promise<Connection>;
}

export function services(host: ServiceHost): Services {
  const at = (level: LogLevel) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
    host.log(level, String(message), fields === undefined ? undefined : logFields(fields));
  return {
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    async variable(key, defaultValue) {
      const value = (await host.variable(key)) ?? defaultValue;
      if (value !== undefined) return value;
      throw new TaskError(
        "TW_VARIABLE_MISSING",
        `variable "${key}" is not set; set it with \`tradewind variables set ${key} <value>\`, or give ctx.variable a default; for dags test, with --variable`,
      );
    },
    async connection(id) {
      const connection = await host.connection(id);
      if (connection !== undefined) return connection;
      throw new TaskError(
        "TW_CONNECTION_MISSING",
        `connection "${id}" is not stored; add it with \`tradewind connections set ${id} ...\`; for dags test, with --connection`,
      );
    },
  };
}
