/**
 * Masks secrets in text that arrives in chunks. Every character that belongs to any occurrence of any known form of any
 * secret is masked, and each contiguous stretch of masked characters becomes one `***`; the result does not depend on the
 * chunking. An Aho-Corasick automaton finds all occurrences in one pass; a chunk's tail that could be the beginning of a
 * secret is held back until the next chunk decides.
 *
 * Terminal escape sequences inside an occurrence are ignored, and so are line breaks after its first few characters,
 * because base64 is wrapped. Ignored characters within an occurrence are masked with it.
 */
import { secretForms } from "./secret-forms.ts";

/** Shorter values match ordinary words so often that masking would only destroy the log. */
const MIN_SECRET_LENGTH = 5;

const MASK = "***";

interface State {
  readonly next: Map<number, State>;
  readonly depth: number;
  fail: State | null;
  /** Length of the longest form that ends here; 0 for none. */
  match: number;
}

/** Ignored characters in the middle of a possible occurrence. */
interface Gap {
  readonly at: number;
  readonly length: number;
}

/** Fewer characters before a line break are no sign of a secret: the line would be held back for nothing. */
const MIN_BEFORE_BREAK = 4;

const FIRSTS = 256;
const ESC_CODE = 0x1b;
const BACKSLASH = 0x5c;

/** A control sequence, e.g. a colour, or a link; or the beginning of one at the end of the text. */
const [ESC, BEL] = ["\u001b", "\u0007"];
const ESCAPE = new RegExp(
  `${ESC}(?:\\[[0-?]*[ -/]*(?:[@-~]|$)|\\][^${BEL}${ESC}]{0,2048}(?:${BEL}|${ESC}\\\\|$)|$)`,
  "y",
);
const LINE_BREAK = /(?:\r|\n|\\r|\\n)+[ \t]*/y;

function ignoredAt(text: string, at: number, state: State): number {
  const pattern = text.charCodeAt(at) === ESC_CODE ? ESCAPE : LINE_BREAK;
  // A complete occurrence does not continue in the next line.
  if (pattern === LINE_BREAK && (state.depth < MIN_BEFORE_BREAK || state.next.size === 0)) return 0;
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0].length ?? 0;
}

/** The start of a stretch that ends at `end` and has this many characters besides those in gaps. */
function startOf(end: number, length: number, gaps: readonly Gap[]): number {
  let start = end - length;
  for (let index = gaps.length - 1; index >= 0; index--) {
    const gap = gaps[index] as Gap;
    if (gap.at + gap.length <= start) break;
    start -= gap.length;
  }
  return start;
}

/** The secrets of one attempt. Grows while the attempt reads connections and variables. */
export class SecretMask {
  readonly #forms = new Set<string>();
  #inherited: ReadonlySet<string> | null = null;
  #root: State | null = null;
  /** By character code: whether a form may begin with it. True for all codes beyond the table. */
  #firsts = new Uint8Array(FIRSTS);

  get empty(): boolean {
    if (this.#inherited !== null) {
      const secrets = this.#inherited;
      this.#inherited = null;
      for (const secret of secrets) this.add(secret);
    }
    return this.#forms.size === 0;
  }

  /** Secrets known before; they cost nothing until there is text to mask. */
  inherit(secrets: ReadonlySet<string>): void {
    this.#inherited = secrets;
  }

  /** Returns false if the value is too short to be masked. */
  add(secret: string): boolean {
    if (secret.trim().length < MIN_SECRET_LENGTH) return false;
    for (const form of secretForms(secret)) {
      if (form.length < MIN_SECRET_LENGTH) continue;
      this.#forms.add(form);
      this.#root = null;
    }
    return true;
  }

  /** Masks a complete text. */
  whole(text: string): string {
    if (this.empty) return text;
    const stream = new MaskStream(this);
    return stream.push(text) + stream.end();
  }

  /** For MaskStream: the stretches of `text` covered by secrets, and the length of its undecided end. */
  scan(text: string, coveredBefore: number): { covered: readonly [number, number][]; undecided: number } {
    const root = this.#automaton();
    const covered: [number, number][] = coveredBefore > 0 ? [[0, coveredBefore]] : [];
    let state = root;
    let gaps: Gap[] = [];
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (state === root) {
        // Nearly every character of an ordinary log is decided here.
        if (this.#firsts[code] === 0) continue;
        if (gaps.length > 0) gaps = [];
      } else if ((code <= ESC_CODE || code === BACKSLASH) && !state.next.has(code)) {
        const length = ignoredAt(text, at, state);
        if (length > 0) {
          gaps.push({ at, length });
          at += length - 1;
          continue;
        }
      }
      state = step(state, code, root);
      if (state.match > 0) cover(covered, startOf(at + 1, state.match, gaps), at + 1);
    }
    return { covered, undecided: text.length - startOf(text.length, state.depth, gaps) };
  }

  #automaton(): State {
    if (this.#root === null) {
      this.#root = build(this.#forms);
      this.#firsts.fill(0);
      for (const code of this.#root.next.keys()) this.#firsts[code] = 1;
    }
    return this.#root;
  }
}

/** One stream of text through a mask. Secrets added meanwhile apply to the text that is still held back. */
export class MaskStream {
  readonly #mask: SecretMask;
  #held = "";
  /** How many characters of `#held` an earlier occurrence already covers. */
  #heldCovered = 0;
  /** The last output was a mask: a continued stretch must not print a second one. */
  #open = false;

  constructor(mask: SecretMask) {
    this.#mask = mask;
  }

  push(chunk: string): string {
    if (this.#mask.empty) return chunk;
    const text = this.#held + chunk;
    const { covered, undecided } = this.#mask.scan(text, this.#heldCovered);
    const until = text.length - undecided;
    const out = this.#emit(text, covered, until);
    this.#held = text.slice(until);
    const last = covered.at(-1);
    this.#heldCovered = last === undefined ? 0 : Math.max(0, last[1] - until);
    return out;
  }

  /** Returns the text that was held back. */
  end(): string {
    const text = this.#held;
    const covered = this.#mask.empty ? [] : this.#mask.scan(text, this.#heldCovered).covered;
    const out = this.#emit(text, covered, text.length);
    this.#held = "";
    this.#heldCovered = 0;
    this.#open = false;
    return out;
  }

  #emit(text: string, covered: readonly [number, number][], until: number): string {
    if (until === 0) return "";
    let out = "";
    let at = 0;
    for (const [start, end] of covered) {
      if (start >= until) break;
      if (start > at) {
        out += text.slice(at, start);
        this.#open = false;
      }
      if (!this.#open) out += MASK;
      this.#open = true;
      at = Math.min(end, until);
    }
    if (at < until) {
      out += text.slice(at, until);
      this.#open = false;
    }
    return out;
  }
}

/** Adds [start, end) to stretches that are sorted, disjoint and not touching; `end` never decreases. */
function cover(stretches: [number, number][], start: number, end: number): void {
  let last = stretches.at(-1);
  while (last !== undefined && start <= last[1]) {
    start = Math.min(start, last[0]);
    end = Math.max(end, last[1]);
    stretches.pop();
    last = stretches.at(-1);
  }
  stretches.push([start, end]);
}

function step(state: State, code: number, root: State): State {
  for (let from: State | null = state; from !== null; from = from.fail) {
    const next = from.next.get(code);
    if (next !== undefined) return next;
  }
  return root;
}

function build(forms: Iterable<string>): State {
  const root: State = { next: new Map(), depth: 0, fail: null, match: 0 };
  for (const form of forms) {
    let state = root;
    for (let at = 0; at < form.length; at++) {
      const code = form.charCodeAt(at);
      let next = state.next.get(code);
      if (next === undefined) {
        next = { next: new Map(), depth: at + 1, fail: root, match: 0 };
        state.next.set(code, next);
      }
      state = next;
    }
    state.match = form.length;
  }
  const queue: State[] = [...root.next.values()];
  for (const state of queue) {
    for (const [code, child] of state.next) {
      child.fail = step(state.fail ?? root, code, root);
      // Breadth first: the shorter suffix is already complete.
      if (child.match === 0) child.match = child.fail.match;
      queue.push(child);
    }
  }
  return root;
}
