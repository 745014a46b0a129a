import { EngineError } from "../../service/errors.ts";

/** SQL text with the name it is prepared under, once per connection. An empty name: parsed at each use. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** One statement with its values, for `Database.pipeline`. */
export interface Call {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

const MAX_NAME_BYTES = 63;
const textByName = new Map<string, string>();

/** Declares a prepared statement. Two texts under one name would run the wrong one, so this is rejected at load time. */
export function statement(name: string, text: string): Statement {
  if (name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new EngineError(
      "STATEMENT_NAME",
      `Statement name "${name}" must have 1 to ${MAX_NAME_BYTES} bytes.`,
    );
  }
  const known = textByName.get(name);
  if (known !== undefined && known !== text) {
    throw new EngineError("STATEMENT_NAME", `Two statements are named "${name}": rename one of them.`);
  }
  textByName.set(name, text);
  return { name, text };
}

/** For text built at run time (list filters): never prepared by name, so it cannot fill the server's cache. */
export function adhoc(text: string): Statement {
  return { name: "", text };
}

export function call(statement: Statement, ...values: readonly unknown[]): Call {
  return { statement, values };
}
