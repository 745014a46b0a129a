/** Groups of lines, from `::group::Title` to `::endgroup::`, and the rows of a log in which some of them are folded. Pure. */
import { KIND } from "./log-line.ts";
import { allRows, type LogRows } from "./log-rows.ts";

export interface LogGroup {
  /** The line with the title. */
  readonly first: number;
  /** The line with `::endgroup::`, or the number of lines if there is none yet. */
  readonly end: number;
  readonly isEnded: boolean;
  readonly hasError: boolean;
  readonly parent: LogGroup | null;
  /** From 0 on. */
  readonly depth: number;
}

type OpenGroup = { -readonly [Key in keyof LogGroup]: LogGroup[Key] };

/** In the order of their titles. An end without a beginning is a line like any other. */
export function groupsOf(kinds: Uint8Array): readonly LogGroup[] {
  const groups: OpenGroup[] = [];
  let current: OpenGroup | null = null;
  for (let line = 0; line < kinds.length; line += 1) {
    const kind = kinds[line]!;
    if ((kind & KIND.level) === 3)
      for (let each = current; each !== null; each = each.parent) each.hasError = true;
    if ((kind & KIND.group) !== 0) {
      const group: OpenGroup = {
        first: line,
        end: kinds.length,
        isEnded: false,
        hasError: false,
        parent: current,
        depth: current === null ? 0 : current.depth + 1,
      };
      groups.push(group);
      current = group;
    } else if ((kind & KIND.endGroup) !== 0 && current !== null) {
      current.end = line;
      current.isEnded = true;
      current = current.parent;
    }
  }
  return groups;
}

/** Until a reader decides: what has ended well is folded. */
export function isUsuallyFolded({ hasError, isEnded }: LogGroup): boolean {
  return isEnded && !hasError;
}

/** The innermost group of a line: of a title, its own group. */
export function groupAt(groups: readonly LogGroup[], line: number): LogGroup | null {
  let low = 0;
  let high = groups.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (groups[middle]!.first <= line) low = middle + 1;
    else high = middle;
  }
  let found: LogGroup | null = groups[low - 1] ?? null;
  while (found !== null && found.end < line) found = found.parent;
  return found;
}

/** The groups that hide a line when they are folded. */
export function groupsAround(groups: readonly LogGroup[], line: number): readonly LogGroup[] {
  const found: LogGroup[] = [];
  for (let each = groupAt(groups, line); each !== null; each = each.parent)
    if (each.first !== line) found.push(each);
  return found;
}

interface Stretch {
  readonly row: number;
  readonly line: number;
}

/** All lines but those of folded groups, and the line that ends a group. */
export function foldedRows(
  lines: number,
  groups: readonly LogGroup[],
  isFolded: (group: LogGroup) => boolean,
): LogRows {
  if (groups.length === 0) return allRows(lines);
  const hidden: (readonly [from: number, to: number])[] = [];
  let until = -1;
  for (const group of groups) {
    if (group.first < until) continue;
    if (isFolded(group)) {
      until = Math.min(lines, group.end + 1);
      hidden.push([group.first + 1, until]);
    } else if (group.isEnded) hidden.push([group.end, group.end + 1]);
  }
  hidden.sort(([a], [b]) => a - b);
  const stretches: Stretch[] = [];
  let row = 0;
  let line = 0;
  for (const [from, to] of hidden) {
    if (from > line) {
      stretches.push({ row, line });
      row += from - line;
    }
    line = to;
  }
  if (line < lines) {
    stretches.push({ row, line });
    row += lines - line;
  }
  const count = row;
  return {
    count,
    at: (wanted) => {
      const { line, row } = stretches[lastUpTo(stretches, wanted, "row")]!;
      return line + wanted - row;
    },
    rowOf: (wanted) => {
      const at = lastUpTo(stretches, wanted, "line");
      const { line, row } = stretches[at] ?? { line: 0, row: 0 };
      return Math.max(0, Math.min(row + wanted - line, (stretches[at + 1]?.row ?? count) - 1));
    },
    isFiltered: false,
  };
}

function lastUpTo(stretches: readonly Stretch[], wanted: number, key: keyof Stretch): number {
  let low = 0;
  let high = stretches.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (stretches[middle]![key] <= wanted) low = middle;
    else high = middle;
  }
  return low;
}
