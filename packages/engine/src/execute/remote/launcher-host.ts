/** What a remote executor does for its launcher. */
import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts } from "@tradewind/sdk/program";
import { tidy } from "../../log/attempt-log.ts";
import type { LogWriter } from "../../log/log-writer.ts";
import type { LogLine } from "../../log/task-log.ts";
import { launchToken } from "../../secret/attempt-token.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import {
  describeAssignments,
  existingAssignments,
  unclaimedAssignments,
} from "../../store/execute/assignments.ts";
import { installationId } from "../../store/execute/installation.ts";
import { reportEnds } from "../../store/execute/reports.ts";
import { errorFacts } from "../attempt/end-errors.ts";
import { CLOSING } from "../attempt/job-wording.ts";
import type { LauncherHost, LaunchFailure } from "./launcher.ts";

export interface LauncherHostParts {
  readonly name: string;
  readonly database: Database;
  readonly logger: Logger;
  readonly logs: LogWriter;
  readonly secretBox: SecretBox;
}

export function launcherHost({ database, logger, logs, name, secretBox }: LauncherHostParts): LauncherHost {
  const end = async (contents: ReadonlyMap<string, Json>, lines: ReadonlyMap<string, Line>) => {
    const counted = await reportEnds(database, contents);
    for (const { id, log_key: key } of counted) {
      const line = lines.get(id);
      if (line !== undefined) writeLine(logs, logger, key, line);
    }
  };
  return {
    executor: name,
    logger,
    installation: () => installationId(database),
    unclaimed: (page) => unclaimedAssignments(database, name, page),
    launchToken: (id) => launchToken(secretBox, id),
    existing: (ids) => existingAssignments(database, ids),
    describe: async (ids) => {
      const rows = ids.length === 0 ? [] : await describeAssignments(database, ids);
      return new Map(
        rows.map((row) => [
          row.id,
          {
            kind: row.kind,
            dagId: row.dag_id,
            runId: row.run_id,
            taskId: row.task_id,
            mapIndex: row.map_index,
            tryNumber: row.try_number,
          },
        ]),
      );
    },
    lost: (reasons) =>
      end(
        mapValues(reasons, (lost) => ({ lost })),
        mapValues(reasons, (lost) => ["warn", `${sentence(lost)} ${CLOSING.lost}`]),
      ),
    failed: (failures) =>
      end(
        mapValues(failures, endContent),
        mapValues(failures, ({ message }) => ["error", message]),
      ),
  };
}

type Line = readonly [level: LogLine["level"], message: string];

/** For an attempt the outcome counts, for a callback and a reaction the error. */
function endContent({ code, message }: LaunchFailure): Json {
  const error: ErrorFacts = errorFacts(code, tidy(message));
  const outcome = { kind: "failed", error, retry: true };
  return { outcome, error } as unknown as Json;
}

/** Its worker is gone, so the log has no other writer. */
function writeLine(logs: LogWriter, logger: Logger, key: string, [level, message]: Line): void {
  const onError = (error: unknown) =>
    logger.warn("cannot write a log", { log: key, error: messageOf(error) });
  const log = logs.open(key, { onPressure: () => {}, onError });
  const t = new Date().toISOString();
  for (const text of tidy(message).split("\n")) {
    const line: LogLine = { t, level, source: "engine", message: text };
    log.append(`${JSON.stringify(line)}\n`);
  }
  void log.close();
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function mapValues<From, To>(of: ReadonlyMap<string, From>, change: (from: From) => To): Map<string, To> {
  return new Map([...of].map(([key, value]) => [key, change(value)]));
}
