/**
 * The environment of a process that runs user code: built up from an allow-list, never cut down from ours, so that a
 * secret added to the engine's environment tomorrow is not in it either.
 */
const ALWAYS = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
const TASK_PREFIX = "TRADEWIND_TASK_";

/**
 * @param allow Further names; a trailing `*` stands for any ending. The engine's own settings cannot be allowed:
 *   they hold its database URL, its keys and its tokens.
 */
export function taskEnvironment(
  source: NodeJS.ProcessEnv,
  allow: readonly string[] = [],
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(source)) {
    if (value === undefined || isEngineSetting(name)) continue;
    if (name.startsWith(TASK_PREFIX) || matches(name, ALWAYS) || matches(name, allow))
      environment[name] = value;
  }
  return environment;
}

function isEngineSetting(name: string): boolean {
  if (name === "DATABASE_URL" || name === "PGPASSWORD") return true;
  return name.startsWith("TRADEWIND_") && !name.startsWith(TASK_PREFIX);
}

function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}
