/**
 * The error of a test that cannot run as written; the message contains the remedy.
 * @example await runDag(sales, { until: "soon" as never }).catch((error: DagTestError) => error.code); // "TW_TEST_BAD_OPTION"
 */
export class DagTestError extends Error {
  override readonly name = "DagTestError";
  readonly code:
    | "TW_TEST_BAD_OPTION"
    | "TW_TEST_ENDLESS"
    | "TW_TEST_NEVER_FIRES"
    | "TW_TEST_NOT_A_DAG"
    | "TW_TEST_NOT_STOPPED"
    | "TW_TEST_NO_EVENT"
    | "TW_TEST_STUCK"
    | "TW_TEST_TASK_UNKNOWN";
  /** The message without its remedy, for callers with a remedy of their own. */
  readonly problem: string;

  constructor(code: DagTestError["code"], problem: string, remedy?: string) {
    super(remedy === undefined ? problem : `${problem}; ${remedy}`);
    this.code = code;
    this.problem = problem;
  }
}
