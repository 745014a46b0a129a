import { userEnvironment } from "../service/user-environment.ts";

/** The environment of user code, and the path of the bundler's own program. */
export function bundlerEnvironment(from: NodeJS.ProcessEnv): Record<string, string> {
  const { ESBUILD_BINARY_PATH } = from;
  return { ...userEnvironment(from), ...(ESBUILD_BINARY_PATH !== undefined && { ESBUILD_BINARY_PATH }) };
}
