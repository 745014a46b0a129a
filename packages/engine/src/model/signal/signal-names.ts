/** Names of signals: the engine's own namespaces, and patterns in which `*` matches any text. */

/** Written only by the engine: these signals cannot be forged. */
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

/** Whether a namespace or pattern can match a reserved one. */
export function isReserved(namespace: string): boolean {
  if (!isPattern(namespace)) return RESERVED_NAMESPACES.has(namespace);
  return [...RESERVED_NAMESPACES].some((own) => matches(namespace, own));
}

export function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%");
}

export function isPattern(text: string): boolean {
  return text.includes("*");
}

/** Whether a text matches a pattern. Linear in the length of the text, because patterns come from users. */
export function matches(pattern: string, text: string): boolean {
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === text;
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
    return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}
