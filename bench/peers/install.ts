/** Installs the peers, at the versions of peers/package-lock.json, into bench/.peers: on demand, not with the repository. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const FROM = fileURLToPath(new URL("./", import.meta.url));
const TO = fileURLToPath(new URL("../.peers/", import.meta.url));

/** Returns the installed versions. */
export async function installPeers(): Promise<Readonly<Record<string, string>>> {
  const lock = await readFile(`${FROM}package-lock.json`, "utf8");
  const installed = await readFile(`${TO}installed-lock.json`, "utf8").catch(() => "");
  if (lock !== installed) {
    await mkdir(TO, { recursive: true });
    for (const name of ["package.json", "package-lock.json"]) await copyFile(FROM + name, TO + name);
    // From inside that folder, bare names resolve in its node_modules.
    await writeFile(`${TO}load.mjs`, "export const load = (name) => import(name);\n");
    // Not `npm ci`: it rejects a lock file that lacks optional packages of other platforms, and none of those is needed.
    const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"];
    const npm = spawn("npm", ["install", ...flags], { cwd: TO, stdio: ["ignore", 2, 2] });
    const [code] = await once(npm, "exit");
    if (code !== 0) throw new Error(`npm install in ${TO} failed with exit code ${code}`);
    await writeFile(`${TO}installed-lock.json`, lock);
  }
  const { dependencies } = JSON.parse(await readFile(`${FROM}package.json`, "utf8")) as {
    dependencies: Record<string, string>;
  };
  return dependencies;
}
