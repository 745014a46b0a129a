/**
 * `node --import @tradewind/testing/register`: lets Node import text, YAML and bytes like a bundle, for tests that run
 * DAGs with `runDag`. It must be registered before the tests are loaded: Node loads all imports of a module before it
 * runs any of its code.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const MARK = "tradewind-import";
/** Without an import attribute, these are text. */
const TEXT = /\.(?:sql|txt|md|html|ya?ml)$/;

registerHooks({
  resolve(specifier, context, next) {
    const type = context.importAttributes["type"] ?? (TEXT.test(specifier) ? "text" : undefined);
    if (type !== "text" && type !== "yaml" && type !== "bytes") return next(specifier, context);
    const found = next(specifier, { ...context, importAttributes: {} });
    // Node checks the remaining attributes against its own formats, which do not include these.
    const url = new URL(found.url);
    url.searchParams.set(MARK, type);
    return { ...found, url: url.href, format: "module", importAttributes: {}, shortCircuit: true };
  },
  load(url, context, next) {
    const type = url.includes(MARK) ? new URL(url).searchParams.get(MARK) : null;
    if (type === null) return next(url, context);
    return { format: "module", source: moduleOf(type, new URL(url)), shortCircuit: true };
  },
});

function moduleOf(type: string, url: URL): string {
  url.search = "";
  const content = readFileSync(fileURLToPath(url));
  if (type === "bytes") return `export default Uint8Array.from(${JSON.stringify([...content])});`;
  const value: unknown = type === "yaml" ? parse(content.toString()) : content.toString();
  return `export default ${JSON.stringify(value) ?? "null"};`;
}
