/** What a bundler child may know of our environment: enough to run Node and read packages, and no credential. */
const ALLOWED = new Set([
  "PATH",
  "HOME",
  "USER",
  "LANG",
  "LANGUAGE",
  "TZ",
  "TMPDIR",
  "TMP",
  "TEMP",
  "SYSTEMROOT",
  "PATHEXT",
  "NODE_ENV",
  "NODE_COMPILE_CACHE",
  "ESBUILD_BINARY_PATH",
]);

export function bundlerEnvironment(from: NodeJS.ProcessEnv): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [key, value] of Object.entries(from)) {
    const name = key.toUpperCase();
    if (value !== undefined && (ALLOWED.has(name) || name.startsWith("LC_"))) environment[key] = value;
  }
  return environment;
}
