/**
 * Reads a TypeScript file as far as the laws need it: tokens without comments, and the imports among them. Not a compiler:
 * it recognizes strings, templates (nested ones too), comments and regular expressions, so that a word inside one of them
 * is never mistaken for code, and the forms of imports.
 */
export type Token = {
  readonly kind: "word" | "string" | "template" | "regex" | "mark";
  /** Without quotes; for a template only the literal parts, with a space for each substitution. */
  readonly text: string;
  readonly line: number;
  /** A template with substitutions: its value is unknown. */
  readonly isComputed?: boolean;
};

export interface Import {
  /** Null if computed at run time. */
  readonly specifier: string | null;
  /** Erased at compile time. */
  readonly isTypeOnly: boolean;
  readonly isDynamic: boolean;
  readonly line: number;
}

export function tokens(source: string): Token[] {
  return new Scanner(source).scan();
}

/** Every `import`, `export … from`, `import()` and `require()`. */
export function importsOf(list: readonly Token[]): Import[] {
  const found: Import[] = [];
  list.forEach((token, at) => {
    if (token.kind !== "word" || list[at - 1]?.text === ".") return;
    const next = list[at + 1];
    const isCall = next?.kind === "mark" && next.text === "(";
    if ((token.text === "import" || token.text === "require") && isCall) {
      const isType = list[at - 1]?.text === "typeof";
      found.push({
        specifier: knownText(list[at + 2], list[at + 3]),
        isTypeOnly: isType,
        isDynamic: !isType,
        line: token.line,
      });
    } else if (token.text === "import" && next?.text !== ".") {
      pushStatic(found, list, at);
    } else if (token.text === "export" && isReExport(list, at)) {
      pushStatic(found, list, at);
    }
  });
  return found;
}

function pushStatic(found: Import[], list: readonly Token[], at: number): void {
  const end = list.findIndex((token, index) => index > at && token.kind === "string");
  const specifier = list[end];
  if (!specifier) return;
  const second = list[at + 2]?.text;
  const isTypeOnly = list[at + 1]?.text === "type" && second !== "from" && second !== ",";
  found.push({ specifier: specifier.text, isTypeOnly, isDynamic: false, line: list[at]?.line ?? 0 });
}

/** `export * from`, `export { a } from`, each also with `type`; not `export { a };` and not `export const`. */
function isReExport(list: readonly Token[], at: number): boolean {
  let next = at + 1;
  if (list[next]?.text === "type") next++;
  if (list[next]?.kind !== "mark") return false;
  if (list[next]?.text === "*") return true;
  if (list[next]?.text !== "{") return false;
  const close = list.findIndex((token, index) => index > next && token.kind === "mark" && token.text === "}");
  return list[close + 1]?.text === "from";
}

function knownText(argument: Token | undefined, after: Token | undefined): string | null {
  const isText = argument?.kind === "string" || (argument?.kind === "template" && !argument.isComputed);
  return isText && (after?.text === ")" || after?.text === ",") ? argument.text : null;
}

const WORD = /[\p{ID_Start}$_#][\p{ID_Continue}$]*/uy;
const NUMBER = /\d[\w.]*/y;

class Scanner {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;

  constructor(source: string) {
    this.#source = source;
  }

  scan(): Token[] {
    this.#code(null);
    return this.#tokens;
  }

  /** Code up to the end, or up to the brace that closes a template's substitution. */
  #code(until: "}" | null): void {
    let depth = 0;
    while (this.#at < this.#source.length) {
      const char = this.#source[this.#at] as string;
      if (until && char === "}" && depth === 0) return;
      if (char === "{") depth++;
      if (char === "}") depth--;
      if (/\s/.test(char)) this.#skip(1);
      else if (this.#source.startsWith("//", this.#at)) this.#skipTo("\n");
      else if (this.#source.startsWith("/*", this.#at)) this.#skipTo("*/");
      else if (char === '"' || char === "'") this.#string(char);
      else if (char === "`") this.#template();
      else if (char === "/" && this.#startsRegex()) this.#regex();
      else this.#wordOrMark(char);
    }
  }

  #wordOrMark(char: string): void {
    for (const pattern of [WORD, NUMBER]) {
      pattern.lastIndex = this.#at;
      const match = pattern.exec(this.#source)?.[0];
      if (match) {
        this.#push("word", match);
        this.#skip(match.length);
        return;
      }
    }
    this.#push("mark", char);
    this.#skip(1);
  }

  #string(quote: string): void {
    const line = this.#line;
    let text = "";
    this.#skip(1);
    while (this.#at < this.#source.length && this.#source[this.#at] !== quote) text += this.#character();
    this.#skip(1);
    this.#tokens.push({ kind: "string", text, line });
  }

  #template(): void {
    const line = this.#line;
    const place = this.#tokens.length;
    let text = "";
    let isComputed = false;
    this.#skip(1);
    while (this.#at < this.#source.length && this.#source[this.#at] !== "`") {
      if (!this.#source.startsWith("${", this.#at)) {
        text += this.#character();
        continue;
      }
      isComputed = true;
      text += " ";
      this.#skip(2);
      this.#code("}");
      this.#skip(1);
    }
    this.#skip(1);
    // Before the tokens of its substitutions, where it began.
    this.#tokens.splice(place, 0, { kind: "template", text, line, isComputed });
  }

  #character(): string {
    const isEscape = this.#source[this.#at] === "\\";
    const text = this.#source.slice(this.#at, this.#at + (isEscape ? 2 : 1));
    this.#skip(text.length);
    return isEscape ? text.slice(1) : text;
  }

  /** A slash is a division only after a value. */
  #startsRegex(): boolean {
    const last = this.#tokens.at(-1);
    if (!last) return true;
    if (last.kind === "mark") return !/[)\]}]/.test(last.text);
    return last.kind === "word" && /^(return|typeof|case|in|of|void|yield|await|delete)$/.test(last.text);
  }

  #regex(): void {
    const start = this.#at;
    let isClass = false;
    this.#skip(1);
    for (; this.#at < this.#source.length; this.#skip(1)) {
      const char = this.#source[this.#at];
      if (char === "\\") this.#skip(1);
      else if (char === "[") isClass = true;
      else if (char === "]") isClass = false;
      else if (char === "/" && !isClass) break;
    }
    this.#skip(1);
    while (/[a-z]/.test(this.#source[this.#at] ?? "")) this.#skip(1);
    this.#push("regex", this.#source.slice(start, this.#at));
  }

  #push(kind: Token["kind"], text: string): void {
    this.#tokens.push({ kind, text, line: this.#line });
  }

  #skipTo(end: string): void {
    const found = this.#source.indexOf(end, this.#at + 2);
    this.#skip((found < 0 ? this.#source.length : found + end.length) - this.#at);
  }

  #skip(count: number): void {
    for (let end = this.#at + count; this.#at < end; this.#at++)
      if (this.#source[this.#at] === "\n") this.#line++;
  }
}
