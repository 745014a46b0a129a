/** Builds what is published: JavaScript and declarations of each package, in the order of their dependencies. */
import { execFileSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

for (const name of ["sdk", "engine", "testing", "cli"]) {
  const folder = join(root, "packages", name);
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  execFileSync("tsc", ["-p", join(folder, "tsconfig.build.json")], { stdio: "inherit", cwd: root });
  process.stdout.write(`built packages/${name}\n`);
}
// Migrations are read from disk, beside the code that applies them.
const migrations = join("store", "migrations");
const engine = join(root, "packages", "engine");
cpSync(join(engine, "src", migrations), join(engine, "dist", migrations), { recursive: true });
