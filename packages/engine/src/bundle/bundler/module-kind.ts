/**
 * What Node and the nearest package.json say of a DAG file: whether it is an ES module or CommonJS. esbuild reads that for
 * files it finds itself; a DAG file is given to it as text, under a name that must say the same.
 */
import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";

/** The list of what a CommonJS DAG file exports: `module.exports` itself, then its members. */
export const COMMONJS_EXPORTS = "tradewind$exports";

/** The ending under which the file is bundled: ".mts" and ".mjs" for ".ts" and ".js" in a package of ES modules. */
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
 * esbuild gives `module.exports` of a CommonJS file as the default export. The members of it count like named exports:
 * `exports.default = dag(…)` is also what TypeScript compiles `export default` to.
 */
export function withCommonJsExports(code: string, entry: string): string {
  const given = new RegExp(`^var (stdin_default\\d*) = (require_${entry}\\d*\\(\\));$`, "m");
  return code.replace(given, (_, name: string, exports: string) => {
    const list = `((exports) => [exports, ...Object.values(exports ?? {})])(${exports})`;
    return `var ${COMMONJS_EXPORTS} = ${list};\nvar ${name} = ${COMMONJS_EXPORTS};`;
  });
}
