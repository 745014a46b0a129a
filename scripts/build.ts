/** Builds the published packages: JavaScript and declarations, in the order of their dependencies. */
import { execFileSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildWeb } from "./build-web.ts";

const root = join(import.meta.dirname, "..");

for (const name of ["sdk", "engine", "testing", "cli"]) {
  const folder = join(root, "packages", name);
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  execFileSync("tsc", ["-p", join(folder, "tsconfig.build.json")], { stdio: "inherit", cwd: root });
  process.stdout.write(`built packages/${name}\n`);
}
// Read from disk, beside the code that uses them: migrations, and the description of the signal service.
const engine = join(root, "packages", "engine");
for (const path of [join("store", "migrations"), join("signal", "grpc", "signals.proto")])
  cpSync(join(engine, "src", path), join(engine, "dist", path), { recursive: true });
// The engine serves the web UI.
cpSync(await buildWeb(), join(engine, "dist", "web"), { recursive: true });
