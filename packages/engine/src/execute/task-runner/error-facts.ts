/** Anything that user code can throw, as plain facts; never throws itself. */
import type { ErrorFacts } from "@tradewind/sdk/program";

const MAX_CAUSES = 5;

export function factsOf(thrown: unknown): ErrorFacts {
  try {
    if (!(thrown instanceof Error)) {
      return {
        name: "Error",
        message: `a value that is not an error was thrown: ${show(thrown)}`,
        stack: null,
        code: null,
      };
    }
    const code: unknown = (thrown as { code?: unknown }).code;
    return {
      name: String(thrown.name),
      message: String(thrown.message),
      stack: stackOf(thrown),
      code: typeof code === "string" ? code : null,
    };
  } catch {
    return { name: "Error", message: "an error that cannot be read was thrown", stack: null, code: null };
  }
}

function stackOf(error: Error): string {
  let text = String(error.stack ?? error);
  let cause: unknown = error.cause;
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth++) {
    text += `\ncaused by: ${cause.stack ?? cause}`;
    cause = cause.cause;
  }
  return text;
}

function show(value: unknown): string {
  return typeof value === "object" ? (JSON.stringify(value) ?? "undefined") : String(value);
}
