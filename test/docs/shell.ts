/** Parses a shell line as far as the docs use it: words, quotes, variables, `$(…)` kept as one word. */
export function shellWords(line: string, variables: ReadonlyMap<string, string> = new Map()): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/(?:"(?:\$\([^)]*\)|[^"])*"|'[^']*'|\\.|[^\s"'\\])+/g)) {
    const parts = word.match(/"(?:\$\([^)]*\)|[^"])*"|'[^']*'|[^"']+/g) ?? [];
    words.push(parts.map((part) => value(part, variables)).join(""));
  }
  return words;
}

/** The lines of a block that are commands, without comments and empty lines. */
export function commandLines(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
}

function value(part: string, variables: ReadonlyMap<string, string>): string {
  if (part.startsWith("'")) return part.slice(1, -1);
  const text = part.startsWith('"') ? part.slice(1, -1) : part;
  return text.replace(/\$(\w+)/g, (name, key: string) => variables.get(key) ?? name);
}
