/** Patterns of signal names, against the reserved namespaces and in SQL. */
import { fitsPattern, isPattern, RESERVED_NAMESPACES } from "@tradewind/sdk/signal-names";

/** Whether a namespace or pattern can match a reserved one. */
export function isReserved(namespace: string): boolean {
  if (!isPattern(namespace)) return RESERVED_NAMESPACES.has(namespace);
  return [...RESERVED_NAMESPACES].some((own) => fitsPattern(namespace, own));
}

export function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%");
}
