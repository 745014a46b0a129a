/**
 * The changes between two texts, line by line, in the format of `diff -u`: the shortest list of removed and added lines
 * (Myers), if it has at most MOST_EDITS edits, because its cost is quadratic in the edits. Beyond that limit, everything
 * between the common prefix and the common suffix counts as replaced: longer than necessary, but correct.
 */
const MOST_EDITS = 2_000;

/** Unchanged lines around each change. */
const CONTEXT = 3;

type Kind = " " | "-" | "+";

interface Line {
  readonly kind: Kind;
  readonly text: string;
}

/** Empty when the texts are equal. The names appear in the header like file names. */
export function unifiedDiff(from: Named, to: Named): string {
  if (from.text === to.text) return "";
  const lines = diffLines(linesOf(from.text), linesOf(to.text));
  const parts = [`--- ${from.name}\n`, `+++ ${to.name}\n`];
  for (const hunk of hunksOf(lines)) {
    parts.push(`@@ -${range(hunk.fromAt, hunk.lines, "+")} +${range(hunk.toAt, hunk.lines, "-")} @@\n`);
    for (const { kind, text } of hunk.lines) {
      parts.push(`${kind}${text}`);
      if (!text.endsWith("\n")) parts.push("\n\\ No newline at end of file\n");
    }
  }
  return parts.join("");
}

export interface Named {
  readonly name: string;
  readonly text: string;
}

/** Lines with their line ends, so that a last line without a newline differs from one with it. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function diffLines(from: readonly string[], to: readonly string[]): Line[] {
  const most = Math.min(from.length, to.length);
  let start = 0;
  while (start < most && from[start] === to[start]) start++;
  let end = 0;
  while (end < most - start && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  const before = from.slice(start, from.length - end);
  const after = to.slice(start, to.length - end);
  return [
    ...from.slice(0, start).map(kept),
    ...(shortest(before, after) ?? [...before.map(removed), ...after.map(added)]),
    ...from.slice(from.length - end).map(kept),
  ];
}

/**
 * Diagonal `k` holds the points x, y with x - y = k. After `d` edits `reached[k]` is the farthest x on it. The state of each
 * round is kept, and the path is read from it backwards. Null: more than MOST_EDITS.
 */
function shortest(from: readonly string[], to: readonly string[]): Line[] | null {
  const most = Math.min(from.length + to.length, MOST_EDITS);
  const rounds: Int32Array[] = [];
  let reached = Int32Array.of(0, 0, 0);
  for (let d = 0; d <= most; d++) {
    const former = reached;
    reached = new Int32Array(2 * d + 3);
    rounds.push(reached);
    for (let k = -d; k <= d; k += 2) {
      let x = d === 0 ? 0 : goesDown(former, d, k) ? former[k + 1 + d]! : former[k - 1 + d]! + 1;
      while (x < from.length && x - k < to.length && from[x] === to[x - k]) x++;
      reached[k + d + 1] = x;
      if (x >= from.length && x - k >= to.length) return wayBack(rounds, from, to);
    }
  }
  return null;
}

/** `former` is the state after d - 1 edits: diagonal k is at index k + d. */
function goesDown(former: Int32Array, d: number, k: number): boolean {
  return k === -d || (k !== d && former[k - 1 + d]! < former[k + 1 + d]!);
}

function wayBack(rounds: readonly Int32Array[], from: readonly string[], to: readonly string[]): Line[] {
  const lines: Line[] = [];
  let x = from.length;
  let y = to.length;
  for (let d = rounds.length - 1; d > 0; d--) {
    const former = rounds[d - 1]!;
    const k = x - y;
    const isDown = goesDown(former, d, k);
    const startX = isDown ? former[k + 1 + d]! : former[k - 1 + d]! + 1;
    while (x > startX) {
      lines.push(kept(from[--x]!));
      y--;
    }
    lines.push(isDown ? added(to[--y]!) : removed(from[--x]!));
  }
  while (x > 0) lines.push(kept(from[--x]!));
  return lines.reverse();
}

interface Hunk {
  /** 1-based line number of the first line in each text, or the line before which it would be inserted. */
  readonly fromAt: number;
  readonly toAt: number;
  readonly lines: Line[];
}

function* hunksOf(lines: readonly Line[]): Iterable<Hunk> {
  const isChange = (index: number) => lines[index]!.kind !== " ";
  let fromAt = 1;
  let toAt = 1;
  let at = 0;
  for (;;) {
    let change = at;
    while (change < lines.length && !isChange(change)) change++;
    if (change === lines.length) return;
    const start = Math.max(at, change - CONTEXT);
    fromAt += start - at;
    toAt += start - at;
    // Changes with touching context form one hunk.
    let last = change;
    for (let next = change; next < lines.length && next - last <= 2 * CONTEXT; next++)
      if (isChange(next)) last = next;
    at = Math.min(lines.length, last + 1 + CONTEXT);
    const hunk = { fromAt, toAt, lines: lines.slice(start, at) };
    yield hunk;
    fromAt += hunk.lines.filter(({ kind }) => kind !== "+").length;
    toAt += hunk.lines.filter(({ kind }) => kind !== "-").length;
  }
}

function range(at: number, lines: readonly Line[], without: Kind): string {
  const count = lines.filter(({ kind }) => kind !== without).length;
  return `${count === 0 ? at - 1 : at},${count}`;
}

const kept = (text: string): Line => ({ kind: " ", text });
const removed = (text: string): Line => ({ kind: "-", text });
const added = (text: string): Line => ({ kind: "+", text });
