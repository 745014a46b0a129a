/**
 * The environment of every process that runs user code: tasks, callbacks, triggers, timetables, the import of DAG files.
 * It is built from an allow-list, not by removing variables from ours, so that a new secret in the engine's environment is
 * not passed on by accident. The list is in the environment itself: all of these processes get the same.
 */

/** What programs need to run and to reach the network. Case-insensitive: proxies are spelled both ways, Windows has `Path`. */
const ALWAYS = new RegExp(
  `^(?:${[
    "PATH|HOME|TMPDIR|TMP|TEMP|SYSTEMROOT|PATHEXT|NODE_ENV|NODE_COMPILE_CACHE",
    "HTTP_PROXY|HTTPS_PROXY|ALL_PROXY|NO_PROXY|NODE_USE_ENV_PROXY",
    "NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA|SSL_CERT_FILE|SSL_CERT_DIR",
    "LANG|LANGUAGE|LC_\\w+|TZ",
  ].join("|")})$`,
  "i",
);
const SETTING = "TRADEWIND_TASK_ENV";
const TASK_PREFIX = "TRADEWIND_TASK_";
/** Settings of the services, although they have the prefix. */
const TASK_SETTINGS: ReadonlySet<string> = new Set([SETTING, "TRADEWIND_TASK_USER"]);
/** Credentials of the services with names that are not ours. */
const SECRETS: ReadonlySet<string> = new Set("DATABASE_URL PGPASSWORD PGPASSFILE REDIS_URL".split(" "));

/** A name in the allow-list. */
const NAME = /^[\w*]+$/;

type Source = Readonly<Record<string, string | undefined>>;

export function userEnvironment(source: Source): Record<string, string> {
  const isAllowed = allowed(source);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(source))
    if (value !== undefined && isAllowed(name)) environment[name] = value;
  return environment;
}

/** Never passed on, even if the allow-list matches it. */
function isEngineSetting(name: string): boolean {
  const upper = name.toUpperCase();
  if (SECRETS.has(upper) || TASK_SETTINGS.has(upper)) return true;
  return upper.startsWith("TRADEWIND_") && !upper.startsWith(TASK_PREFIX);
}

/** Variables that are set for this process and not passed on, although they could be. */
export function withheldNames(source: Source): ReadonlySet<string> {
  const isAllowed = allowed(source);
  return new Set(Object.keys(source).filter((name) => !isAllowed(name) && !isEngineSetting(name)));
}

/** Variables that a pattern of the allow-list matches and that are still not passed on. */
export function refusedNames(source: Source): string[] {
  const pattern = patternOf(source[SETTING]);
  return Object.keys(source).filter((name) => isEngineSetting(name) && pattern.test(name));
}

/** The names of an allow-list such as `AWS_*,HF_TOKEN`; in each, `*` stands for any text. */
export function namesIn(list: string): string[] {
  const names = list.split(",").map((name) => name.trim());
  return names.filter((name) => name !== "");
}

/** The problem with an allow-list, or null. A pattern may match a secret: it is withheld, with a warning. */
export function problemOf(list: string): string | null {
  const names = namesIn(list);
  const odd = names.find((name) => !NAME.test(name));
  if (odd !== undefined)
    return `has ${JSON.stringify(odd)}: give names with commas between them, such as AWS_*,HF_TOKEN.`;
  const own = names.find((name) => !name.includes("*") && isEngineSetting(name));
  if (own === undefined) return null;
  return `names ${own}, which is never passed to user code. Remove it; use env: { … } of a DAG to give its tasks a value of their own.`;
}

function allowed(source: Source): (name: string) => boolean {
  const pattern = patternOf(source[SETTING]);
  return (name) =>
    !isEngineSetting(name) && (ALWAYS.test(name) || name.startsWith(TASK_PREFIX) || pattern.test(name));
}

function patternOf(list = ""): RegExp {
  const names = namesIn(list).filter((name) => NAME.test(name));
  return new RegExp(`^(?:${names.map((name) => name.replaceAll("*", ".*")).join("|") || "(?!)"})$`);
}
