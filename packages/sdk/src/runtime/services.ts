/** What user code may ask of the process around it, the same for tasks and triggers. */

import { TaskError } from "../check/errors.ts";
import type { Connection, TaskLog } from "./context.ts";
import { logFields } from "./log-fields.ts";
import type { LogLevel, TaskHost } from "./program.ts";

/** The part of a host that tasks and triggers share. */
type ServiceHost = Pick<TaskHost, "log" | "variable" | "connection">;

/** The services of a context, on top of its host. */
export interface Services {
  readonly log: TaskLog;
  /** A stored variable; without a default, one that is not set is an error. */
  variable(key: string, defaultValue?: string): Promise<string>;
  /** A stored connection; one that is not stored is an error. */
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
