/**
 * Keeps the secrets of a service out of /proc/<pid>/environ, which every process of its account can read, also a task. That
 * file shows the environment at the start of a program; changing `process.env` does not change it. So the service replaces
 * itself (execve: same process id, same streams) without the secrets in its environment, and reads them from a file that only
 * its account can open. The new program deletes the file first; if it is killed before that, the file stays in the temporary
 * folder.
 *
 * Where this is not possible (Windows, no writable temporary folder), the service starts unchanged.
 *
 * It also keeps Node.js from opening its debugger on SIGUSR1, which any process of the account can send. `--inspect` works.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SERVICES = [
  "api",
  "backfill serve",
  "dag-processor",
  "execute",
  "scheduler",
  "signals serve",
  "standalone",
  "triggerer",
  "worker",
];
/** Environment variable with the path of the file. */
const FILE = "TRADEWIND_START_FILE";
const SECRET = /^(TRADEWIND_(?!TASK_)|PG|AWS_)|_URL$|TOKEN|SECRET|PASSWORD|PASSWD|KEY|CREDENTIAL/;

export function hideSecrets(): void {
  // Options may come first (`--home /srv scheduler`). Another command with the same word restarts once, without harm.
  const words = ` ${process.argv.slice(2).join(" ")} `;
  if (!SERVICES.some((name) => words.includes(` ${name} `))) return;
  process.on("SIGUSR1", () => {});
  const { [FILE]: file } = process.env;
  if (file === undefined) startWithoutSecrets();
  else readSecrets(file);
}

function startWithoutSecrets(): void {
  if (process.execve === undefined || process.platform === "win32") return;
  const all = Object.entries(process.env);
  const secrets = all.filter(([name]) => SECRET.test(name));
  if (secrets.length === 0) return;
  const path = join(tmpdir(), `tradewind-start-${randomUUID()}`);
  try {
    writeFileSync(path, JSON.stringify(Object.fromEntries(secrets)), { flag: "wx", mode: 0o600 });
  } catch {
    return;
  }
  const open = Object.fromEntries(all.filter(([name]) => !SECRET.test(name)));
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve(process.execPath, args, { ...open, [FILE]: path });
}

function readSecrets(file: string): void {
  delete process.env[FILE];
  const text = readFileSync(file, "utf8");
  rmSync(file);
  Object.assign(process.env, JSON.parse(text));
}
