import type { ErrorFacts } from "@tradewind/sdk/program";

export function errorFacts(thrown: unknown): ErrorFacts {
  if (!(thrown instanceof Error)) return { name: "Error", message: String(thrown), stack: null, code: null };
  const { name, message, stack } = thrown;
  const { code } = thrown as { readonly code?: unknown };
  return { name, message, stack: stack ?? null, code: typeof code === "string" ? code : null };
}
