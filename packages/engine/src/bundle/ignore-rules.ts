/** `.tradewindignore`: the subset of .gitignore patterns that a DAG folder needs. */
export interface IgnoreRules {
  ignores(file: string, isFolder: boolean): boolean;
}

/** One pattern per line: `*`, `?`, `**`, a leading `/` or a `/` inside anchors it, a trailing `/` means folders, `!` negates. */
export function parseIgnore(text: string): IgnoreRules {
  const rules = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(parseRule);
  return {
    ignores(file, isFolder) {
      let ignored = false;
      for (const rule of rules) {
        if ((!rule.foldersOnly || isFolder) && rule.pattern.test(file)) ignored = !rule.takesBack;
      }
      return ignored;
    },
  };
}

function parseRule(line: string) {
  const takesBack = line.startsWith("!");
  const foldersOnly = line.endsWith("/");
  const glob = line.slice(takesBack ? 1 : 0, foldersOnly ? -1 : undefined);
  const anchored = glob.includes("/");
  const body = glob
    .replace(/^\//, "")
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*\*\/|\*\*|\*|\?/g, (wildcard) => WILDCARDS[wildcard] ?? wildcard);
  return { takesBack, foldersOnly, pattern: new RegExp(`^${anchored ? "" : "(?:.*/)?"}${body}$`) };
}

const WILDCARDS: Readonly<Record<string, string>> = {
  "**/": "(?:.*/)?",
  "**": ".*",
  "*": "[^/]*",
  "?": "[^/]",
};
