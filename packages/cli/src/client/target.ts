/**
 * The address and token of the server. In order: the flag, the environment, the files that a running `standalone` writes to
 * its home folder. The home's token has full rights: it is sent only to that home's server or to this machine, never to any
 * other address given by the user.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CliError, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";

export interface TargetOptions {
  readonly home?: string | undefined;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
}

export interface Target {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: string | undefined;
  /** The standalone process, if the address came from its home. */
  readonly pid: number | undefined;
}

interface Standalone {
  readonly url: string;
  readonly pid: number | undefined;
  /** The store for large outputs, from its configuration. */
  readonly outputStore: string | undefined;
  readonly logStore: string | undefined;
  /** Its DAG folder. */
  readonly dags: string | undefined;
}

export const DEFAULT_HOME = ".tradewind";

export function homeFolder(options: TargetOptions, env: NodeJS.ProcessEnv): string {
  return options.home || env.TRADEWIND_HOME || DEFAULT_HOME;
}

export function findTarget(options: TargetOptions, env: NodeJS.ProcessEnv): Target {
  const home = homeFolder(options, env);
  const standalone = readStandalone(home);
  const given = options.url || env.TRADEWIND_URL;
  if (!given && !standalone) {
    throw new CliError("TW_CLI_NO_SERVER", `no server found: no standalone is running in ${home}.`, {
      exit: EXIT.server,
      remedy: "start one with `tradewind standalone`, set its folder with --home, or give --url and --token",
    });
  }
  const url = normalizeUrl(given ?? standalone!.url);
  const ownServer = standalone !== undefined && normalizeUrl(standalone.url) === url;
  const token =
    options.token || env.TRADEWIND_TOKEN || (ownServer || isLoopback(url) ? readToken(home) : undefined);
  return { url, token, pid: ownServer ? standalone.pid : undefined };
}

/** What a running standalone wrote about itself; undefined if none was started in this home. */
export function readStandalone(home: string): Standalone | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(home, "standalone.json"), "utf8"));
    if (value === null || typeof value !== "object") return undefined;
    const { dags, url, pid, logStore, outputStore } = value as Record<string, unknown>;
    if (typeof url !== "string") return undefined;
    return {
      url,
      pid: typeof pid === "number" ? pid : undefined,
      outputStore: typeof outputStore === "string" ? outputStore : undefined,
      logStore: typeof logStore === "string" ? logStore : undefined,
      dags: typeof dags === "string" ? dags : undefined,
    };
  } catch {
    return undefined;
  }
}

export function processAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function readToken(home: string): string | undefined {
  const path = join(home, "token");
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CliError(
      "TW_CLI_TOKEN_UNREADABLE",
      `cannot read the token file ${path}: ${(error as Error).message}.`,
      {
        exit: EXIT.auth,
        remedy: "run the command as the user who runs the server, or give --token or TRADEWIND_TOKEN",
        cause: error,
      },
    );
  }
}

function normalizeUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw usageError(`"${text}" is not a URL.`, "example: --url http://127.0.0.1:8080");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw usageError(`"${text}" is not an http or https address.`, "example: --url http://127.0.0.1:8080");
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "").replace(/\/api\/v2$/, "");
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
