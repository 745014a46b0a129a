/**
 * Collects all invalid options of one `dag()` call into one error. `dag()` and its build function run synchronously, so
 * one variable holds the errors of the current call; a `dag()` inside a build function has its own.
 */
import { DagDefinitionError, TriggerError } from "./errors.ts";

type DefinitionError = DagDefinitionError | TriggerError;

const MAX_LINES = 20;

let found: DefinitionError[] | null = null;

/** Runs the definition of one DAG. @throws The error that it found, or one error with all of them as `errors`. */
export function collectErrors<T>(where: string, define: () => T): T {
  const outer = found;
  const own: DefinitionError[] = [];
  found = own;
  try {
    const result = define();
    if (own.length === 0) return result;
  } catch (error) {
    if (own.length === 0) throw error;
    // Any other error may be caused by an option that was rejected.
    if (isDefinitionError(error)) own.push(error);
  } finally {
    found = outer;
  }
  throw joined(where, own);
}

/**
 * Throws the error. While a DAG is being defined, collects it instead; the caller continues with a value that is never
 * used.
 */
export function refuse(error: DefinitionError): void {
  if (found === null) throw error;
  found.push(error);
}

/** Returns the result of `check`; while a DAG is being defined, `fallback` if `check` throws. */
export function orElse<T>(check: () => T, fallback: T): T {
  try {
    return check();
  } catch (error) {
    if (found === null || !isDefinitionError(error)) throw error;
    found.push(error);
    return fallback;
  }
}

/** Returns whether `check` rejects nothing. */
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
