/**
 * The text of a label's function, read before its answer is believed. What stands for an item sees which fields are put
 * among words, but not `?:`, `??` or `===`: those decide by what the fields are, and there are none yet. So only what
 * decides nothing is let through: names, fields, texts, `+`, and the few calls that make text of what they are given.
 */

/** A word, a number, a text, what is between the expressions of a template, or a sign. */
const TOKEN =
  /\s+|\/\/[^\n\r]*|\/\*.*?\*\/|[\p{ID_Start}$_][\p{ID_Continue}$]*|\d+|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|=>|\?\.(?!\d)|\?\?|\|\||&&|[=!]==?|\.\.\.|./suy;
const TEMPLATE = /(?:\\.|\$(?!\{)|[^\\`$])*(`|\$\{)/suy;

const SIGNS = new Set(["(", ")", "[", "]", "{", "}", ",", ".", "?.", ":", ";", "+", "=>", "`"]);
/** After these a bracket is no call. */
const HARMLESS = new Set(["function", "return"]);
/** Words of the language that decide, change or call something. */
const RESERVED = new Set(
  [
    ["await", "break", "case", "catch", "class", "const", "continue", "debugger", "delete", "do", "else"],
    ["finally", "for", "if", "import", "in", "instanceof", "new", "super", "switch", "this", "throw", "try"],
    ["typeof", "var", "void", "while", "with", "yield"],
  ].flat(),
);

/** What a label must not have in it, as its author wrote it; null: there is nothing. */
export function decidingPart(text: string): string | null {
  if (/\{\s*\[native code\]\s*\}$/.test(text)) return "[native code]";
  const tokens = tokensOf(text);
  // The parameters of the function itself stand in brackets too.
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

/** `String(field)`, `[field, field].join("-")`, `field.toString()`. */
function makesText(before: readonly string[]): boolean {
  const [sign, name = ""] = before.slice(-2);
  const isMethod = sign === "." || sign === "?.";
  return isMethod ? name === "join" || name === "toString" : name === "String";
}

/** A template is a text, "`", followed by its expressions in brackets. */
function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  /** For each template around this place: how many braces are open in its expression. */
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
