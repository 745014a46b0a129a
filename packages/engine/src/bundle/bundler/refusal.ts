/** A file whose DAGs cannot be loaded although its code is valid. It has no position: the message is complete. */
export class DagRefused extends Error {
  readonly code: string;

  constructor(message: string, code = "DAG_REFUSED") {
    super(message);
    this.code = code;
  }
}

/** The same, because of one expression in the source. */
export class SourceRefused extends DagRefused {
  readonly path: string;
  readonly text: string;
  /** The position of the expression in the text. */
  readonly at: number;

  constructor(message: string, where: { code: string; path: string; text: string; at: number }) {
    super(message, where.code);
    this.path = where.path;
    this.text = where.text;
    this.at = where.at;
  }
}
