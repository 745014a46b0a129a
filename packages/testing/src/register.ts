/**
 * `node --import @tradewind/testing/register`: lets Node import text, YAML and bytes as a bundle does, for tests that run
 * DAGs with `runDag`. Registered before the tests are loaded: Node loads all imports of a module before any of its code.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const MARK = "tradewind-import";
/** Imported without an attribute, these are text. */
const TEXT = /\.(?:sql|txt|md|html|ya?ml)$/;

registerHooks({
  resolve(specifier, context, next) {
    const type = context.importAttributes["type"] ?? (TEXT.test(specifier) ? "text" : undefined);
    if (type !== "text" && type !== "yaml" && type !== "bytes") return next(specifier, context);
    const found = next(specifier, { ...context, importAttributes: {} });
    // Node checks the attributes that are left against what it loads, and knows none of these.
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
