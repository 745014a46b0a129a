/** Names of signals: the engine's own namespaces, and patterns in which `*` matches any text. */

/**
 * The namespace of signals that name none.
 * @example const namespace = DEFAULT_NAMESPACE; // "default"
 */
export const DEFAULT_NAMESPACE = "default";

/**
 * The namespaces that only the engine writes to, so that their signals cannot be forged.
 * @example RESERVED_NAMESPACES.has("task"); // true
 */
export const RESERVED_NAMESPACES: ReadonlySet<string> = new Set([
  "task",
  "run",
  "trigger",
  "schedule",
  "action",
  "asset",
  "webhook",
  "deadline",
]);

/**
 * Returns whether a name contains the wildcard "*".
 * @example isPattern("order.*"); // true
 */
export function isPattern(name: string): boolean {
  return name.includes("*");
}

/**
 * Returns whether a name matches a pattern in which "*" stands for any text, in linear time.
 * @example fitsPattern("order.*", "order.paid"); // true
 */
export function fitsPattern(pattern: string, name: string): boolean {
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === name;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  const end = name.length - last.length;
  if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}
