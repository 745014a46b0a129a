/**
 * The logs of a worker's attempts, sent to the API in chunks. The chunks of all logs that gather within a short time are one
 * request; the first lines, and the last ones of a log that is closed, are sent at once.
 *
 * While the API cannot be reached, a log keeps about a megabyte and then slows its task down, at most until the lease of the
 * worker ends. A log is closed when all of it is stored, so that it precedes the end of its attempt: afterwards the API no
 * longer accepts it. Lines that the worker has not sent when it dies are lost.
 */
import { ChunkedLog } from "../../log/chunked-log.ts";
import { LOG_CHUNK_REJECTED, LOG_STORE_UNAVAILABLE } from "../../log/log-store.ts";
import type { LogListener, LogSink, LogWriter } from "../../log/log-writer.ts";
import { EngineError } from "../../service/errors.ts";
import type { Claim, WorkerCalls } from "./worker-calls.ts";

export interface RemoteLogsOptions {
  readonly calls: WorkerCalls;
  /** The claim of the assignment that has this log. */
  readonly claimOf: (key: string) => Claim;
}

export class RemoteLogs implements LogWriter {
  readonly #options: RemoteLogsOptions;

  constructor(options: RemoteLogsOptions) {
    this.#options = options;
  }

  open(key: string, listener: LogListener): LogSink {
    const { calls, claimOf } = this.#options;
    const chunks = new RemoteChunks(calls, claimOf(key));
    // They gather in the batch.
    const log = new ChunkedLog(chunks, listener, 0);
    return {
      append: (line) => log.append(line),
      close: () => calls.hurryLogs(log.close()),
    };
  }
}

class RemoteChunks {
  readonly #calls: WorkerCalls;
  readonly #claim: Claim;
  /** Where this writer began. */
  #first = 0;

  constructor(calls: WorkerCalls, claim: Claim) {
    this.#calls = calls;
    this.#claim = claim;
  }

  /** Nearly every log is new: asking would delay each. */
  begin(): Promise<number> {
    return Promise.resolve(0);
  }

  async append(offset: number, bytes: Buffer): Promise<void> {
    const text = bytes.toString("utf8");
    try {
      await this.#send(this.#first + offset, text);
    } catch (error) {
      if (offset > 0 || (error as EngineError).code !== LOG_CHUNK_REJECTED) throw error;
      // Not new: e.g. a callback whose worker died is run again.
      this.#first = await this.#send(null, "");
      await this.#send(this.#first, text);
    }
  }

  async #send(offset: number | null, text: string): Promise<number> {
    const { token, worker } = this.#claim;
    const { code, error, size } = await this.#calls.log({ worker, token, offset, text });
    if (size !== undefined) return size;
    // It will never be stored.
    const isSuperseded = code === "TASK_ATTEMPT_SUPERSEDED";
    throw new EngineError(isSuperseded ? LOG_CHUNK_REJECTED : (code ?? LOG_STORE_UNAVAILABLE), error ?? "");
  }
}
