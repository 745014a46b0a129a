/**
 * Gives the modules of a bundle their own location. All of them become one module; a module that names files relative to
 * itself gets a path in the bundle's tree of files, as if it were stored there.
 */
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import type { Loader, Plugin } from "esbuild";

/** The replacements for `import.meta` in the build: names that each module with a path declares. */
export const PLACE_DEFINES = {
  "import.meta.url": "__tw_here.url",
  "import.meta.dirname": "__tw_here.dirname",
  "import.meta.filename": "__tw_here.filename",
} as const;

/** The text with its path declared in the first line, so that all line numbers stay the same. */
export function placed(text: string, place: string): string {
  const url = place.split("/").map(encodeURIComponent).join("/");
  const names = ["dirname", "filename"].filter((name) => isFree(text, `__${name}`));
  const declared = names.map((name) => `var __${name} = __tw_here.${name};`).join("");
  return `var __tw_here = __tw_place(${JSON.stringify(url)});${declared}${text.replace(/^#!.*/, "")}`;
}

export function placingPlugin(places: ReadonlyMap<string, string>): Plugin {
  const paths = [...places.keys()].map((path) => path.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return {
    name: "tradewind-places",
    setup: (esbuild) => {
      esbuild.onLoad({ filter: new RegExp(`^(?:${paths.join("|")})$`), namespace: "file" }, ({ path }) => {
        const place = places.get(path);
        if (place === undefined) return undefined;
        return { contents: placed(readFileSync(path, "utf8"), place), loader: loaderOf(path) };
      });
    },
  };
}

/** The lines of a bundle that its module paths need. */
export function placeBanner(code: string): string[] {
  const lines: string[] = [];
  if (code.includes("__tw_place(")) {
    lines.push('import { fileURLToPath as __tw_path } from "node:url";');
    lines.push(
      'const __tw_place = (path) => { const url = new URL("./files/" + path, import.meta.url); return { url: url.href, filename: __tw_path(url), dirname: __tw_path(new URL(".", url)).slice(0, -1) }; };',
    );
  }
  // For a bundled package, which has no path: esbuild has renamed the declarations of other modules.
  if (isFree(code, "__tw_here")) lines.push("const __tw_here = import.meta;");
  return lines;
}

function isFree(text: string, name: string): boolean {
  return (
    new RegExp(`\\b${name}\\b`).test(text) && !new RegExp(`\\b(?:var|let|const)\\s+${name}\\b`).test(text)
  );
}

export function loaderOf(path: string): Loader {
  if (/\.[mc]?ts$/.test(path)) return "ts";
  return extname(path) === ".tsx" ? "tsx" : extname(path) === ".jsx" ? "jsx" : "js";
}
