import { userEnvironment } from "../service/user-environment.ts";

/** What user code gets, and where the bundler itself finds its program. */
export function bundlerEnvironment(from: NodeJS.ProcessEnv): Record<string, string> {
  const { ESBUILD_BINARY_PATH } = from;
  return { ...userEnvironment(from), ...(ESBUILD_BINARY_PATH !== undefined && { ESBUILD_BINARY_PATH }) };
}
