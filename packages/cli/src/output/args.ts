/** A trigger's arguments in one line, as people read them. JSON and YAML output keeps them as they are. */
export function argsText(args: unknown): string {
  if (args === null || typeof args !== "object" || Array.isArray(args)) return JSON.stringify(args) ?? "";
  return Object.entries(args)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}
