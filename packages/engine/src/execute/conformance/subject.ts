/** The subject of the conformance suite: an installation with the executor. */

/**
 * A running installation: API, triggerer, schedulers, and what runs tasks. The executor under test is its default executor, and
 * its DAG folder contains the files of `EXAMPLE_DAGS`. Its drain time (TRADEWIND_DRAIN) should be a few seconds.
 */
export interface ExecutorSubject {
  /** The address of the API. */
  readonly url: string;
  /** A token of the role admin. */
  readonly token: string;
  /** Attempts outlive their scheduler: they run in workers, pods or jobs of another service. */
  readonly isRemote: boolean;
  /** This machine, as tasks reach it. Default: 127.0.0.1. */
  readonly host?: string;
  /** Kills the schedulers, like a power failure. Resolves when another scheduler runs. */
  killScheduler(): Promise<void>;
  /**
   * Kills what runs this attempt, like a power failure: the worker or pod with all its processes; the scheduler if the executor
   * runs tasks beside it. Resolves when other attempts can run.
   */
  killRunner(attempt: string): Promise<void>;
  /** Sends SIGTERM to what runs this attempt, as a deploy does. Resolves when other attempts can run. */
  stopRunner(attempt: string): Promise<void>;
  /** Launches attempts again that were launched before, e.g. sends their messages again. Nothing, if that cannot happen. */
  launchAgain(attempts: readonly string[]): Promise<void>;
}

export interface ConformanceCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}
