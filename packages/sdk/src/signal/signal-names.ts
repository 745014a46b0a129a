/** Names of signals: the engine's own namespaces, and patterns in which `*` matches any text. */

/** The namespace of signals that name none. */
export const DEFAULT_NAMESPACE = "default";

/** Written only by the engine, so that these signals cannot be forged. Anyone may listen to them. */
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

export function isPattern(name: string): boolean {
  return name.includes("*");
}

/** "*" matches any text, including an empty one. Linear in the length of the name: patterns come from users. */
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
