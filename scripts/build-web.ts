/**
 * Builds the web UI into packages/web/dist, unless the build there is that of the present sources. The new build takes the place of
 * the old one when it is complete, so a server that runs meanwhile always has a whole one.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const WEB = join(ROOT, "packages", "web");
const DIST = join(WEB, "dist");
const FINGERPRINT = "sources.sha256";

/** Of everything that the build depends on. */
function fingerprint(): string {
  const hash = createHash("sha256");
  const files = ["{src,public}/**/*", "*.{ts,json,html}"].flatMap((pattern) =>
    globSync(pattern, { cwd: WEB }),
  );
  for (const file of files.sort()) {
    const path = join(WEB, file);
    if (statSync(path).isDirectory() || file.endsWith(".gen.ts")) continue;
    hash.update(`${file}\0`).update(readFileSync(path));
  }
  return hash.update(readFileSync(join(ROOT, "package-lock.json"))).digest("hex");
}

function isBuilt(wanted: string): boolean {
  const mark = join(DIST, FINGERPRINT);
  return existsSync(mark) && readFileSync(mark, "utf8") === wanted;
}

/** Another process may do the same at the same moment: the first complete build of these sources is kept. */
function replaceDist(built: string, old: string, isDone: () => boolean): void {
  for (let tries = 0; !isDone(); tries += 1) {
    try {
      if (existsSync(DIST)) renameSync(DIST, old);
      renameSync(built, DIST);
    } catch (error) {
      if (tries === 50) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
  for (const folder of [built, old]) rmSync(folder, { recursive: true, force: true });
}

/** Returns the folder of the build. */
export async function buildWeb(): Promise<string> {
  const wanted = fingerprint();
  if (isBuilt(wanted)) return DIST;
  process.stderr.write("Building the web UI…\n");
  const since = performance.now();
  // Vite would build React's development mode for any other value, e.g. that of a test runner.
  process.env.NODE_ENV = "production";
  const { build } = await import("vite");
  const cache = join(ROOT, ".cache");
  const outDir = join(cache, `web-${process.pid}`);
  mkdirSync(cache, { recursive: true });
  await build({
    root: WEB,
    configFile: join(WEB, "vite.config.ts"),
    logLevel: "warn",
    build: { outDir, emptyOutDir: true },
  });
  writeFileSync(join(outDir, FINGERPRINT), wanted);
  replaceDist(outDir, join(cache, `web-old-${process.pid}`), () => isBuilt(wanted));
  process.stderr.write(`Built the web UI in ${((performance.now() - since) / 1_000).toFixed(1)} s\n`);
  return DIST;
}

if (import.meta.main) await buildWeb();
