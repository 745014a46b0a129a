/** Reads the doc comments of a package's entry points from their source. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "./guide.ts";

export interface ApiSymbol {
  readonly file: string;
  readonly name: string;
  /** Functions, classes and constants; otherwise a type. */
  readonly isValue: boolean;
  /** The text of its doc comment; null without one. */
  readonly comment: string | null;
  /** The comments of the fields of an interface, by name. */
  readonly fields: ReadonlyMap<string, string>;
}

const DECLARATION = /^export (?:abstract |async )*(interface|type|class|function|const) (\w+)/gm;
const COMMENT = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\//;

/** The source files of a package's entry points, by their name in its package.json. */
export function entryPoints(name: string): Map<string, string> {
  const folder = join(ROOT, "packages", name);
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    exports: Record<string, { source: string }>;
  };
  return new Map(Object.entries(exports).map(([entry, { source }]) => [entry, join(folder, source)]));
}

/** All symbols that a file declares and exports, or exports from another file. */
export function exportsOf(file: string): ApiSymbol[] {
  const text = readFileSync(file, "utf8");
  const named = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from "(.*)";/gm)].flatMap(
    ([, names, from]) =>
      names!
        .split(",")
        .map((name) => name.trim().replace(/^type /, ""))
        .filter((name) => name !== "")
        .map((name) => [join(dirname(file), from!), name] as const),
  );
  return [
    ...symbolsIn(file, text),
    ...named.map(([path, name]) => {
      const found = symbolsIn(path, readFileSync(path, "utf8")).find((symbol) => symbol.name === name);
      if (found === undefined) throw new Error(`${path} does not declare ${name}`);
      return found;
    }),
  ];
}

/** The declared symbols of a source text; of overloads, and of a type and a value of one name, the first. */
export function symbolsIn(file: string, text: string): ApiSymbol[] {
  const found = new Map<string, ApiSymbol>();
  for (const { index, 1: kind, 2: name } of text.matchAll(DECLARATION)) {
    if (found.has(name!)) continue;
    const before = text.slice(0, index).replace(/\/\/ biome-ignore .*\n$/, "");
    const comment = new RegExp(`${COMMENT.source}\n$`).exec(before)?.[1];
    const isValue = kind !== "type" && kind !== "interface";
    const body = kind === "interface" ? text.slice(index, text.indexOf("\n}\n", index)) : "";
    found.set(name!, {
      file,
      name: name!,
      isValue,
      comment: comment === undefined ? null : plain(comment),
      fields: fieldsIn(body),
    });
  }
  return [...found.values()];
}

/** The sentence of a comment: what precedes its tags. */
export function proseIn(comment: string): string {
  return comment.split(/^@/m, 1)[0]!.replaceAll(/\s+/g, " ").trim();
}

/** The code of the examples in a comment: one line after the tag, or a block. */
export function examplesIn(comment: string): string[] {
  return comment
    .split(/^@/m)
    .filter((part) => part.startsWith("example"))
    .map((part) =>
      part
        .slice("example".length)
        .replaceAll(/^```(?:ts)?$/gm, "")
        .trim(),
    );
}

/** The examples in the source files below a folder, by file. */
export function examplesBelow(folder: string): Map<string, string[]> {
  const files = globSync("**/*.ts", { cwd: folder }).filter((name) => !name.endsWith(".test.ts"));
  return new Map(
    files.map((file) => {
      const comments = readFileSync(join(folder, file), "utf8").matchAll(new RegExp(COMMENT, "g"));
      return [file, [...comments].flatMap(([, comment]) => examplesIn(plain(comment!)))];
    }),
  );
}

function fieldsIn(body: string): Map<string, string> {
  const fields = body.matchAll(new RegExp(`^  ${COMMENT.source}\n  readonly (\\w+)`, "gm"));
  return new Map([...fields].map(([, comment, name]) => [name!, plain(comment!)]));
}

function plain(comment: string): string {
  return comment.replaceAll(/^\s*\* ?/gm, "").trim();
}
