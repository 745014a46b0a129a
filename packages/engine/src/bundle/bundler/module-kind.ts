/**
 * Whether a DAG file is an ES module or CommonJS, by the rules of Node and the nearest package.json. esbuild applies them
 * to files that it resolves itself; a DAG file is passed as text, under a name with the matching extension.
 */
import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";

/** The exports of a CommonJS DAG file as a list: `module.exports` itself, then its members. */
export const COMMONJS_EXPORTS = "tradewind$exports";

/** The extension under which the file is bundled: ".mts" and ".mjs" for ".ts" and ".js" in a package of ES modules. */
export function moduleEnding(path: string): string {
  const ending = extname(path);
  if (ending !== ".ts" && ending !== ".js") return ending;
  return packageType(dirname(path)) === "module" ? `.m${ending.slice(1)}` : ending;
}

function packageType(folder: string): unknown {
  for (let at = folder; ; at = dirname(at)) {
    try {
      return (JSON.parse(readFileSync(join(at, "package.json"), "utf8")) as { type?: unknown }).type;
    } catch (error) {
      if (error instanceof SyntaxError || at === dirname(at)) return undefined;
    }
  }
}

/**
 * esbuild exposes `module.exports` of a CommonJS file as the default export. Its members count like named exports:
 * `exports.default = dag(…)` is also what TypeScript compiles `export default` to.
 */
export function withCommonJsExports(code: string, entry: string): string {
  const given = new RegExp(`^var (stdin_default\\d*) = (require_${entry}\\d*\\(\\));$`, "m");
  return code.replace(given, (_, name: string, exports: string) => {
    const list = `((exports) => [exports, ...Object.values(exports ?? {})])(${exports})`;
    return `var ${COMMONJS_EXPORTS} = ${list};\nvar ${name} = ${COMMONJS_EXPORTS};`;
  });
}
