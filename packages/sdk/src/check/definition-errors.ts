/**
 * All wrong options of one `dag()` call in one error. `dag()` and its build function run synchronously, so one variable
 * holds the errors of the call that is under way; a `dag()` inside a build function has its own.
 */
import { DagDefinitionError, TriggerError } from "./errors.ts";

type DefinitionError = DagDefinitionError | TriggerError;

const MAX_LINES = 20;

let found: DefinitionError[] | null = null;

/** Runs what defines one DAG. @throws the error it found; of several, one that has them as its `errors`. */
export function collectErrors<T>(where: string, define: () => T): T {
  const outer = found;
  const own: DefinitionError[] = [];
  found = own;
  try {
    const result = define();
    if (own.length === 0) return result;
  } catch (error) {
    if (own.length === 0) throw error;
    // Any other error may follow from what was refused.
    if (isDefinitionError(error)) own.push(error);
  } finally {
    found = outer;
  }
  throw joined(where, own);
}

/** Throws the error; while a DAG is being defined, keeps it, and the caller goes on with a value that is never used. */
export function refuse(error: DefinitionError): void {
  if (found === null) throw error;
  found.push(error);
}

/** What `check` answers; while a DAG is being defined, `fallback` if it refuses. */
export function orElse<T>(check: () => T, fallback: T): T {
  try {
    return check();
  } catch (error) {
    if (found === null || !isDefinitionError(error)) throw error;
    found.push(error);
    return fallback;
  }
}

/** Whether `check` refuses nothing. */
export function isAccepted(check: () => unknown): boolean {
  const before = found?.length ?? 0;
  orElse<unknown>(check, null);
  return (found?.length ?? 0) === before;
}

function isDefinitionError(error: unknown): error is DefinitionError {
  return error instanceof DagDefinitionError || error instanceof TriggerError;
}

function joined(where: string, errors: readonly DefinitionError[]): DefinitionError {
  const distinct = [...new Map(errors.map((error) => [error.message, error])).values()];
  const [first] = distinct as [DefinitionError];
  if (distinct.length === 1) return first;
  const lines = distinct.slice(0, MAX_LINES).map(({ code, message }) => `\n  ${message} [${code}]`);
  if (distinct.length > MAX_LINES) lines.push(`\n  … and ${distinct.length - MAX_LINES} more`);
  const code = first instanceof DagDefinitionError ? first.code : "TW_BAD_OPTION";
  return new DagDefinitionError(code, `${where} has ${distinct.length} errors:${lines.join("")}`, {
    errors: distinct,
  });
}
