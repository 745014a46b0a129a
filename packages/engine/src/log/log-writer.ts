/** The writing side of the logs of attempts. A log has a key: a relative path whose parts are ids. */

export interface LogListener {
  /** Much of the log waits to be written (true), or was written (false). */
  readonly onPressure: (high: boolean) => void;
  /** The log cannot be written: later lines are lost. */
  readonly onError: (error: unknown) => void;
}

/** One log. It is created with its first line. */
export interface LogSink {
  append(line: string): void;
  /** Resolves when everything appended so far is written. */
  close(): Promise<void>;
}

export interface LogWriter {
  open(key: string, listener: LogListener): LogSink;
}
