/** A test that cannot be carried out as written; the message says what to change. */
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
  /** The message without its remedy, for whoever knows another one. */
  readonly problem: string;

  constructor(code: DagTestError["code"], problem: string, remedy?: string) {
    super(remedy === undefined ? problem : `${problem}; ${remedy}`);
    this.code = code;
    this.problem = problem;
  }
}
