import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Check } from "./checks.ts";

const REQUIRED = [22, 19] as const;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const recent = major > REQUIRED[0] || (major === REQUIRED[0] && minor >= REQUIRED[1]);
  if (recent) return { name: "Node.js", result: "ok", says: version };
  return {
    name: "Node.js",
    result: "fail",
    says: `${version} is too old`,
    remedy: `install ${REQUIRED.join(".")} or newer`,
  };
}

/** The home is writable, and its secrets are readable by their owner only. */
export function* checkHome(home: string): Generator<Check> {
  const name = "home";
  if (statOf(home) === undefined) {
    yield {
      name,
      result: "warn",
      says: `${home} does not exist yet`,
      remedy: "`tradewind standalone` creates it",
    };
    return;
  }
  try {
    readdirSync(home);
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK);
    yield { name, result: "ok", says: home };
  } catch (error) {
    yield {
      name,
      result: "fail",
      says: `${home} cannot be used: ${(error as Error).message}`,
      remedy: `make the user of Tradewind its owner: chown -R "$USER" ${home}`,
    };
    return;
  }
  for (const file of ["token", "secret.key"]) yield* checkSecret(join(home, file));
}

function* checkSecret(file: string): Generator<Check> {
  const stat = statOf(file);
  if (stat === undefined) return;
  if (process.platform === "win32" || (stat.mode & 0o077) === 0)
    yield { name: "secret", result: "ok", says: `${file} is private` };
  else
    yield {
      name: "secret",
      result: "fail",
      says: `${file} is readable by other users of this machine`,
      remedy: `chmod 600 ${file}`,
    };
}

function statOf(path: string) {
  return statSync(path, { throwIfNoEntry: false });
}
