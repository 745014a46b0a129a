/**
 * Checks the source text of a label function. The recorder that stands for an item sees which fields are joined to
 * text, but not `?:`, `??` or `===`, which depend on values that do not exist yet. So only code without decisions is
 * allowed: names, fields, texts, `+`, and the few calls that turn a value into text.
 */

/** A word, a number, a text, a part of a template between expressions, or a sign. */
const TOKEN =
  /\s+|\/\/[^\n\r]*|\/\*.*?\*\/|[\p{ID_Start}$_][\p{ID_Continue}$]*|\d+|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|=>|\?\.(?!\d)|\?\?|\|\||&&|[=!]==?|\.\.\.|./suy;
const TEMPLATE = /(?:\\.|\$(?!\{)|[^\\`$])*(`|\$\{)/suy;

const SIGNS = new Set(["(", ")", "[", "]", "{", "}", ",", ".", "?.", ":", ";", "+", "=>", "`"]);
/** Words before a bracket that is not a call. */
const HARMLESS = new Set(["function", "return"]);
/** Keywords that decide, change or call something. */
const RESERVED = new Set(
  [
    ["await", "break", "case", "catch", "class", "const", "continue", "debugger", "delete", "do", "else"],
    ["finally", "for", "if", "import", "in", "instanceof", "new", "super", "switch", "this", "throw", "try"],
    ["typeof", "var", "void", "while", "with", "yield"],
  ].flat(),
);

/** The first part that a label must not contain, as written; null if there is none. */
export function decidingPart(text: string): string | null {
  if (/\{\s*\[native code\]\s*\}$/.test(text)) return "[native code]";
  const tokens = tokensOf(text);
  // The parameters of the function itself are in brackets, too.
  const head = tokens.slice(0, 2).includes("=>") ? -1 : tokens.indexOf("(");
  for (const [place, token] of tokens.entries()) {
    const before = tokens[place - 1] ?? "";
    const isField = before === "." || before === "?." || tokens[place + 1] === ":";
    if (isWord(token) ? !isField && RESERVED.has(token) : isSign(token) && !SIGNS.has(token)) return token;
    if (token !== "(" && token !== "`") continue;
    const isCall = (isWord(before) && !HARMLESS.has(before)) || /^(?:[)\]"']|\?\.$)/.test(before);
    if (place !== head && isCall && !makesText(tokens.slice(0, place))) return `${before}${token}`;
  }
  return null;
}

/** Matches `String(field)`, `[field, field].join("-")`, `field.toString()`. */
function makesText(before: readonly string[]): boolean {
  const [sign, name = ""] = before.slice(-2);
  const isMethod = sign === "." || sign === "?.";
  return isMethod ? name === "join" || name === "toString" : name === "String";
}

/** A template becomes the token "`", followed by its expressions in brackets. */
function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  /** For each enclosing template: the number of open braces in its expression. */
  const open: number[] = [];
  let at = 0;
  const take = (form: RegExp): RegExpExecArray | null => {
    form.lastIndex = at;
    const found = form.exec(text);
    at = found ? form.lastIndex : text.length;
    return found;
  };
  const quasi = () => {
    if (take(TEMPLATE)?.[1] !== "${") return void tokens.push("]");
    open.push(0);
    tokens.push(",");
  };
  while (at < text.length) {
    const token = take(TOKEN)?.[0] ?? "";
    if (/^(?:\s|\/[/*])/.test(token)) continue;
    if (token === "`") {
      tokens.push("`", "[");
      quasi();
    } else if (token === "}" && open.at(-1) === 0) {
      open.pop();
      quasi();
    } else {
      if (open.length > 0 && token === "{") open[open.length - 1]!++;
      if (open.length > 0 && token === "}") open[open.length - 1]!--;
      tokens.push(token);
    }
  }
  return tokens;
}

function isWord(token: string): boolean {
  return /^[\p{ID_Start}$_]/u.test(token);
}

function isSign(token: string): boolean {
  return !/^[\d"']/.test(token);
}
