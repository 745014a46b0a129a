/** Patterns with `*` (any characters) and `?` (exactly one). Nothing else is special. */

export function hasWildcard(pattern: string): boolean {
  return /[*?]/.test(pattern);
}

/** The prefix of every match. */
export function literalPrefix(pattern: string): string {
  return pattern.split(/[*?]/, 1)[0] ?? "";
}

export function globMatcher(pattern: string): (text: string) => boolean {
  return (text) => matches(pattern, text);
}

/** Backtracks to the last `*` only, so that no pattern takes more than pattern times text. */
function matches(pattern: string, text: string): boolean {
  let at = 0;
  let star = -1;
  let from = 0;
  let i = 0;
  while (i < text.length) {
    if (pattern[at] === "*") {
      star = at++;
      from = i;
    } else if (pattern[at] === "?" || pattern[at] === text[i]) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++from;
    } else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}
