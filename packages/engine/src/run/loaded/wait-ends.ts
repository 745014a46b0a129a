/**
 * Writes the last log line of a wait that timed out, because no process and no trigger is there to write it. The line has
 * its own file, which readers append to the others of the try. It is written in the background after the commit: if the
 * write fails, or the process dies before it, only that line is missing.
 */
import { AttemptLog } from "../../log/attempt-log.ts";
import type { LogWriter } from "../../log/log-writer.ts";
import { SecretMask } from "../../secret/mask.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";

export interface WaitEndLine {
  /** DAG, run, task and map index. */
  readonly place: readonly string[];
  readonly tryNumber: number;
  readonly attempt: string;
  readonly level: "info" | "error";
  readonly message: string;
}

const MAX_BYTES = 64 * 1024;
/** Beside a bucket, each line is a request. */
const AT_ONCE = 32;

export class WaitEndLog {
  readonly #logs: LogWriter;
  readonly #logger: Logger;
  #work: Promise<void> = Promise.resolve();

  constructor(logs: LogWriter, logger: Logger) {
    this.#logs = logs;
    this.#logger = logger;
  }

  write(lines: readonly WaitEndLine[]): void {
    if (lines.length > 0) this.#work = this.#work.then(() => this.#write(lines));
  }

  /** Resolves when all lines so far are written. */
  close(): Promise<void> {
    return this.#work;
  }

  async #write(lines: readonly WaitEndLine[]): Promise<void> {
    for (let at = 0; at < lines.length; at += AT_ONCE)
      await Promise.all(lines.slice(at, at + AT_ONCE).map((line) => this.#writeLine(line)));
  }

  async #writeLine({ attempt, level, message, place, tryNumber }: WaitEndLine): Promise<void> {
    const key = [...place, `${tryNumber}-${attempt}.end.log`].join("/");
    const onError = (error: unknown) =>
      this.#logger.warn("cannot log the end of a wait", { log: key, error: messageOf(error) });
    const mask = new SecretMask();
    const log = new AttemptLog({
      ...{ logs: this.#logs, key, maxBytes: MAX_BYTES, mask, opening: () => null, onPressure: () => {} },
      onError,
    });
    log.engine(level, message);
    await log.close(0).catch(onError);
  }
}
