/** `import config from "./config.yaml" with { type: "yaml" }` imports the value. Without the attribute it imports the text. */
import { readFileSync } from "node:fs";
import type { Plugin } from "esbuild";

export const YAML: Plugin = {
  name: "tradewind-yaml",
  setup: (esbuild) => {
    esbuild.onLoad({ filter: /\.ya?ml$/ }, async ({ path, with: attributes }) => {
      if (attributes["type"] !== "yaml") return undefined;
      const { parseDocument } = await import("yaml");
      const text = readFileSync(path, "utf8");
      const document = parseDocument(text);
      const [error] = document.errors;
      if (error === undefined) return { contents: JSON.stringify(document.toJS()) ?? "null", loader: "json" };
      const { line = 1, col = 1 } = error.linePos?.[0] ?? {};
      const location = { file: path, line, column: col - 1, lineText: text.split("\n")[line - 1] ?? "" };
      return { errors: [{ text: error.message.split("\n")[0] ?? "invalid YAML", location }] };
    });
  },
};
