/** A test that cannot be carried out as written; the message says what to change. */
export class DagTestError extends Error {
  override readonly name = "DagTestError";
  readonly code:
    | "TW_TEST_BAD_OPTION"
    | "TW_TEST_NOT_A_DAG"
    | "TW_TEST_STUCK"
    | "TW_TEST_TASK_UNKNOWN"
    | "TW_TEST_UNSUPPORTED";

  constructor(code: DagTestError["code"], message: string) {
    super(message);
    this.code = code;
  }
}
