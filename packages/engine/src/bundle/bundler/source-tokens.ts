/** Splits source text into the tokens needed to find paths in it. Not a parser: it skips what it does not recognize. */

export interface Token {
  readonly kind: "name" | "string" | "template" | "other";
  /** A string without its quotes; for a template, the text before its first expression. */
  readonly text: string;
  /** The position of its start. */
  readonly at: number;
  /** Templates with expressions only: the tokens of the first one, and the text after it, up to the next one. */
  readonly first?: { readonly tokens: readonly Token[]; readonly text: string; readonly isLast: boolean };
}

const SPACE = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const NAME = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;
const NUMBER = /\d[\w.]*/y;
const STRING = /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y;
/** After these, a slash is a division; otherwise it begins a regular expression. */
const ENDS_VALUE = /^[\w$)\]}"'`]$/;
const BEFORE_REGEX = /^(?:return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield)$/;

export function tokensOf(text: string): Token[] {
  return read(text, 0, false).tokens;
}

/** Up to the end of the text or, inside a template, to the brace that ends the expression. */
function read(text: string, from: number, isInTemplate: boolean): { tokens: Token[]; end: number } {
  const tokens: Token[] = [];
  let depth = 0;
  let at = text.startsWith("#!") && from === 0 ? text.indexOf("\n") : from;
  if (at < 0) return { tokens, end: text.length };
  while (at < text.length) {
    const space = match(SPACE, text, at);
    if (space !== null) {
      at += space.length;
      continue;
    }
    const char = text[at] as string;
    if (isInTemplate && char === "}" && depth === 0) return { tokens, end: at };
    if (char === "{") depth++;
    if (char === "}") depth--;
    if (char === "`") {
      const { end, token } = template(text, at);
      tokens.push(token);
      at = end;
      continue;
    }
    const name = match(NAME, text, at);
    const string = name === null ? match(STRING, text, at) : null;
    const skipped =
      name ?? string ?? match(NUMBER, text, at) ?? (isRegexNext(tokens) ? match(REGEX, text, at) : null);
    if (name !== null) tokens.push({ kind: "name", text: name, at });
    else if (string !== null) tokens.push({ kind: "string", text: unquoted(string.slice(1, -1)), at });
    else tokens.push({ kind: "other", text: skipped ?? char, at });
    at += (skipped ?? char).length;
  }
  return { tokens, end: at };
}

function template(text: string, from: number): { token: Token; end: number } {
  const parts: { readonly tokens: Token[]; readonly text: string }[] = [];
  let head: string | null = null;
  let begin = from + 1;
  for (let at = begin; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "`" || text.startsWith("${", at)) {
      const piece = unquoted(text.slice(begin, at));
      const last = parts.at(-1);
      if (last) parts[parts.length - 1] = { ...last, text: piece };
      else head = piece;
      if (text[at] === "`") return { token: templateToken(from, head ?? "", parts), end: at + 1 };
      const { end, tokens } = read(text, at + 2, true);
      parts.push({ tokens, text: "" });
      at = end;
      begin = end + 1;
    }
  }
  return { token: templateToken(from, head ?? "", parts), end: text.length };
}

function templateToken(at: number, text: string, parts: readonly { tokens: Token[]; text: string }[]): Token {
  const [first] = parts;
  if (first === undefined) return { kind: "template", text, at };
  return { kind: "template", text, at, first: { ...first, isLast: parts.length === 1 } };
}

function isRegexNext(tokens: readonly Token[]): boolean {
  const last = tokens.at(-1);
  if (last === undefined) return true;
  if (last.kind === "name") return BEFORE_REGEX.test(last.text);
  return last.kind === "other" && !ENDS_VALUE.test(last.text.at(-1) ?? "");
}

function match(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}

/** Handles the escapes that occur in paths. */
function unquoted(text: string): string {
  return text.replace(/\\([\s\S])/g, "$1");
}
