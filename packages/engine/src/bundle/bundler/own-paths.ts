/**
 * Finds the paths that a module builds relative to itself: `new URL("./a.sql", import.meta.url)`,
 * `join(import.meta.dirname, "sql", name)`, `${here}/a.sql`. A path that is only partly known stands for the folder of its
 * known part.
 */
import { posix } from "node:path";
import { type Token, tokensOf } from "./source-tokens.ts";

export interface OwnPath {
  /** Relative to the folder of the module, with "/"; never that folder itself, nor one above it. */
  readonly path: string;
  /** The rest of the path is unknown: the file is somewhere inside. */
  readonly isPartial: boolean;
  /** The position of the expression in the text. */
  readonly at: number;
}

const MENTIONS = /\bimport\s*\.\s*meta\s*\.\s*(?:url|dirname|filename)\b|\b__dirname\b|\b__filename\b/;

/** A fast check that excludes almost every module. */
export function mayHaveOwnPaths(text: string): boolean {
  return MENTIONS.test(text);
}

export function ownPaths(text: string): OwnPath[] {
  return mayHaveOwnPaths(text) ? new PathReader(tokensOf(text)).read() : [];
}

/** A location relative to the module: its own file, or a path from its folder. */
interface Place {
  readonly path: string;
  readonly isFile: boolean;
  readonly isPartial: boolean;
}

interface Parsed {
  readonly place: Place;
  /** The first token after it. */
  readonly end: number;
}

const HERE: Place = { path: "", isFile: false, isPartial: false };
const ITSELF: Place = { path: "", isFile: true, isPartial: false };

class PathReader {
  readonly #tokens: readonly Token[];
  readonly #names: Map<string, Place>;

  constructor(tokens: readonly Token[], names = new Map<string, Place>()) {
    this.#tokens = tokens;
    this.#names = names;
  }

  read(): OwnPath[] {
    const found: OwnPath[] = [];
    for (let at = 0; at < this.#tokens.length; ) {
      const parsed = this.#place(at);
      const token = this.#tokens[at] as Token;
      if (parsed === null) {
        // An expression inside of a template that does not begin with a path may contain one.
        if (token.first) found.push(...new PathReader(token.first.tokens, this.#names).read());
        at++;
        continue;
      }
      const { path, isPartial } = parsed.place;
      if (this.#is(at - 1, "=") && this.#tokens[at - 2]?.kind === "name" && !isPartial)
        this.#names.set(this.#tokens[at - 2]?.text ?? "", parsed.place);
      if (!/^(?:\.\.\/?)*$/.test(path)) found.push({ path, isPartial, at: token.at });
      at = parsed.end;
    }
    return found;
  }

  /** Parses an expression that evaluates to a location, from this token on. */
  #place(at: number): Parsed | null {
    const start = this.#simplePlace(at);
    if (start === null || !this.#is(start.end, "+")) return start;
    const literal = this.#tokens[start.end + 1];
    if (literal?.kind !== "string" && literal?.kind !== "template") return start;
    const isMore = this.#is(start.end + 2, "+");
    const isKnown = literal.first === undefined && !isMore;
    return { place: within(start.place, literal.text.replace(/^\//, ""), isKnown), end: start.end + 2 };
  }

  #simplePlace(at: number): Parsed | null {
    const token = this.#tokens[at];
    if (token === undefined) return null;
    if (token.kind === "template") return this.#template(token, at);
    if (token.kind !== "name") return null;
    // require("path").join(…)
    if (this.#is(at - 1, ".")) return this.#is(at + 1, "(") ? this.#call(token.text, at + 2) : null;
    if (this.#spells(at, "import", ".", "meta", ".")) {
      const member = this.#tokens[at + 4]?.text;
      if (member === "dirname") return { place: HERE, end: at + 5 };
      if (member === "url" || member === "filename") return { place: ITSELF, end: at + 5 };
      return null;
    }
    // `const __dirname =` declares the name and does not use it.
    if (this.#is(at + 1, "=") && !this.#is(at + 2, "=")) return null;
    if (this.#spells(at, "new", "URL", "(")) return this.#url(at + 3);
    const call = this.#is(at + 1, ".") ? at + 2 : at;
    if (this.#is(call + 1, "(")) return this.#call(this.#tokens[call]?.text ?? "", call + 2);
    const named = this.#names.get(token.text);
    if (named !== undefined) return { place: named, end: at + 1 };
    if (token.text === "__dirname") return { place: HERE, end: at + 1 };
    return token.text === "__filename" ? { place: ITSELF, end: at + 1 } : null;
  }

  /** `new URL(` text `,` place `)` */
  #url(at: number): Parsed | null {
    const literal = this.#tokens[at];
    if (literal?.kind !== "string" && literal?.kind !== "template") return null;
    if (!this.#is(at + 1, ",")) return null;
    const base = this.#place(at + 2);
    if (base === null) return null;
    const end = this.#close(base.end);
    if (/^(?:[a-z][a-z\d+.-]*:|\/)/i.test(literal.text)) return null;
    const path = literal.text.replace(/[?#].*$/s, "");
    return end === null ? null : { place: within(base.place, path, literal.first === undefined), end };
  }

  #call(name: string, at: number): Parsed | null {
    if (!/^(?:join|resolve|dirname|fileURLToPath|pathToFileURL)$/.test(name)) return null;
    const base = this.#place(at);
    if (base === null) return null;
    if (name === "join" || name === "resolve") return this.#joined(base);
    const end = this.#close(base.end);
    if (end === null) return null;
    if (name !== "dirname") return { place: base.place, end };
    const { isFile, path } = base.place;
    return { place: isFile ? HERE : { ...base.place, path: posix.join(path, "..") }, end };
  }

  #joined({ place, end: at }: Parsed): Parsed | null {
    let joined = place;
    for (;;) {
      const end = this.#close(at);
      if (end !== null) return { place: joined, end };
      const literal = this.#tokens[at + 1];
      const isLiteral = literal?.kind === "string" || literal?.kind === "template";
      const isAlone = this.#is(at + 2, ",") || this.#close(at + 2) !== null;
      if (isLiteral && isAlone && !joined.isPartial) joined = within(joined, literal.text, !literal.first);
      else joined = { ...joined, isPartial: true };
      at = this.#nextArgument(at + 1);
      if (at < 0) return null;
    }
  }

  #template(token: Token, at: number): Parsed | null {
    if (token.text !== "" || !token.first) return null;
    const { tokens, text, isLast } = token.first;
    const inner = new PathReader(tokens, this.#names).#place(0);
    if (inner === null || inner.end !== tokens.length) return null;
    return { place: within(inner.place, text.replace(/^\//, ""), isLast), end: at + 1 };
  }

  /** The token after a closing parenthesis, with or without a comma before it; null if there is none here. */
  #close(at: number): number | null {
    if (this.#is(at, ")")) return at + 1;
    return this.#is(at, ",") && this.#is(at + 1, ")") ? at + 2 : null;
  }

  /** The comma or the parenthesis that ends the argument; -1 at the end of the text. */
  #nextArgument(from: number): number {
    let depth = 0;
    for (let at = from; at < this.#tokens.length; at++) {
      const { kind, text } = this.#tokens[at] as Token;
      if (kind !== "other") continue;
      if (depth === 0 && (text === "," || text === ")")) return at;
      if (/^[([{]$/.test(text)) depth++;
      if (/^[)\]}]$/.test(text)) depth--;
    }
    return -1;
  }

  #is(at: number, text: string): boolean {
    const token = this.#tokens[at];
    return token?.text === text && token.kind === "other";
  }

  #spells(at: number, ...texts: readonly string[]): boolean {
    return texts.every((text, n) => {
      const token = this.#tokens[at + n];
      return token?.text === text && (token.kind === "name" || token.kind === "other");
    });
  }
}

/** `text` relative to the location; if only its beginning is known, the part before its last slash. */
function within({ isPartial, path }: Place, text: string, isKnown: boolean): Place {
  if (isPartial) return { path, isFile: false, isPartial };
  const known = isKnown ? text : text.slice(0, text.lastIndexOf("/") + 1);
  const joined = posix.join(path === "" ? "." : path, known === "" ? "." : known).replace(/\/$/, "");
  return { path: joined === "." ? "" : joined, isFile: false, isPartial: !isKnown };
}
