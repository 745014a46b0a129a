/**
 * The lines of a log by number, without parsing them: where they are, how severe they are, and which contain a text. Reads pieces of a
 * megabyte, so that other requests are answered in between. A line without its newline is not counted: it may still be written,
 * or its writer is dead.
 */
import type { LogPart } from "./log-files.ts";

const PIECE_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

/** Whole lines: `bytes` begins with the first byte of a line and ends with a newline. */
interface Lines {
  readonly bytes: Buffer;
  /** Position of the first byte in the whole text. */
  readonly start: number;
  readonly part: LogPart;
}

/** The whole lines from `from` on, which must be the beginning of a line, up to `to`. */
export async function* linesBetween(
  parts: readonly LogPart[],
  from: number,
  to = Number.POSITIVE_INFINITY,
): AsyncGenerator<Lines, void, undefined> {
  for (const part of parts) {
    const stop = Math.min(part.log.size, to - part.start);
    let at = Math.max(0, from - part.start);
    let length = PIECE_BYTES;
    while (at < stop) {
      const bytes = await part.log.read(at, Math.min(stop, at + length));
      const end = bytes.lastIndexOf(NEWLINE) + 1;
      if (end > 0) {
        yield { bytes: bytes.subarray(0, end), start: part.start + at, part };
        at += end;
        length = PIECE_BYTES;
      } else if (at + length >= stop || bytes.length === 0) break;
      else length *= 2;
    }
  }
}

export interface LogIndex {
  /** The position after the last whole line. */
  readonly size: number;
  readonly lines: number;
  /** The first line of each chunk, and its position. */
  readonly chunkLines: readonly number[];
  readonly chunkStarts: readonly number[];
  /** A byte per line: see `kindOf`. */
  readonly kinds: Buffer;
  /** False: there is more from `size` on. */
  readonly isWhole: boolean;
}

export interface IndexLimits {
  /** About the size of a chunk. */
  readonly chunkBytes: number;
  readonly mostBytes: number;
}

export async function indexLog(
  parts: readonly LogPart[],
  from: number,
  { chunkBytes, mostBytes }: IndexLimits,
): Promise<LogIndex> {
  const kinds: Buffer[] = [];
  const chunkLines: number[] = [];
  const chunkStarts: number[] = [];
  let lines = 0;
  let size = from;
  let isWhole = true;
  let last: LogPart | null = null;
  for await (const { bytes, part, start } of linesBetween(parts, from)) {
    if (size - from >= mostBytes) {
      isWhole = false;
      break;
    }
    const found = Buffer.allocUnsafe(Math.ceil(bytes.length / 2) + 1);
    let count = 0;
    for (let at = 0; at < bytes.length; ) {
      // A chunk has lines of one part: what a part left unfinished lies between chunks.
      if (part !== last || start + at - chunkStarts.at(-1)! >= chunkBytes) {
        chunkLines.push(lines + count);
        chunkStarts.push(start + at);
        last = part;
      }
      const end = bytes.indexOf(NEWLINE, at);
      found[count++] = kindOf(bytes, at, part.isTrigger);
      at = end + 1;
    }
    kinds.push(found.subarray(0, count));
    lines += count;
    size = start + bytes.length;
  }
  return { size, lines, chunkLines, chunkStarts, kinds: Buffer.concat(kinds), isWhole };
}

const LEVELS = "diwe";
/** The offsets of the values in `{"t":"2026-01-31T02:00:00.000Z","level":"info","source":"task",…`. */
const LEVEL_AT = 41;
const SOURCE_AFTER_LEVEL = 12;
const MESSAGE_AFTER_SOURCE = 13;

const GROUP = Buffer.from("::group::");
const END_GROUP = Buffer.from("::endgroup::");

/**
 * Bits 0 and 1: debug, info, warn, error. Bits 2 and 3: task, stdout, stderr, engine. Bit 4: of a trigger. Bits 5 and 6: begins or
 * ends a group.
 */
function kindOf(bytes: Buffer, start: number, isTrigger: boolean): number {
  const trigger = isTrigger ? 16 : 0;
  const at = start + LEVEL_AT;
  const level = LEVELS.indexOf(String.fromCharCode(bytes[at] ?? 0));
  // Another form: the half of a line, for example.
  if (bytes[start] !== 0x7b || bytes[at - 1] !== 0x22 || level < 0) return 2 | (3 << 2) | trigger;
  const source = at + [5, 4, 4, 5][level]! + SOURCE_AFTER_LEVEL;
  const letter = String.fromCharCode(bytes[source] ?? 0);
  if (letter === "t") return level | trigger | groupBits(bytes, source + 4);
  if (letter === "s")
    return level | ((bytes[source + 3] === 0x6f ? 1 : 2) << 2) | trigger | groupBits(bytes, source + 6);
  return level | (3 << 2) | trigger;
}

/** @param sourceEnd The position of `","message":"` */
function groupBits(bytes: Buffer, sourceEnd: number): number {
  const at = sourceEnd + MESSAGE_AFTER_SOURCE;
  if (bytes[at] !== 0x3a) return 0;
  if (startsAt(bytes, at, GROUP)) return 32;
  return startsAt(bytes, at, END_GROUP) ? 64 : 0;
}

function startsAt(bytes: Buffer, at: number, text: Buffer): boolean {
  return bytes.compare(text, 0, text.length, at, Math.min(bytes.length, at + text.length)) === 0;
}

export interface LogMatches {
  /** All lines with the text. */
  readonly total: number;
  /** The first of them, by number. */
  readonly lines: readonly number[];
}

/** The lines whose message or fields contain a text; upper and lower case of ASCII letters are the same if it has no capitals. */
export async function searchLog(
  parts: readonly LogPart[],
  text: string,
  mostLines: number,
): Promise<LogMatches> {
  const pattern = patternOf(text);
  const found: number[] = [];
  let total = 0;
  /** The number of the line that begins at `counted`. */
  let line = 0;
  for await (const { bytes } of linesBetween(parts, 0)) {
    // One character per byte keeps positions, and is the fastest to search.
    const own = bytes.toString("latin1");
    let counted = 0;
    for (pattern.lastIndex = 0; pattern.test(own); ) {
      const match = pattern.lastIndex - 1;
      const begin = match === 0 ? 0 : own.lastIndexOf("\n", match - 1) + 1;
      const end = own.indexOf("\n", match);
      const message = own.indexOf(MESSAGE, begin);
      // Names and values before the message are the same in all lines.
      if (message >= 0 && message < end && match < message + MESSAGE.length) {
        pattern.lastIndex = message + MESSAGE.length;
        continue;
      }
      for (; counted < begin; line++) counted = bytes.indexOf(NEWLINE, counted) + 1;
      total++;
      if (found.length < mostLines) found.push(line);
      pattern.lastIndex = end + 1;
    }
    for (; counted < bytes.length; line++) counted = bytes.indexOf(NEWLINE, counted) + 1;
  }
  return { total, lines: found };
}

const MESSAGE = '"message":';

/** The text as it is stored: in JSON, in UTF-8. */
function patternOf(text: string): RegExp {
  const stored = Buffer.from(JSON.stringify(text).slice(1, -1)).toString("latin1");
  const exact = stored.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
  const isExact = /[A-Z]/.test(text);
  // Letters of escapes such as \n are part of the JSON: they have one case.
  const source = isExact ? exact : exact.replace(/\\.|[a-z]/g, (each) => caseless(each));
  return new RegExp(source, "g");
}

function caseless(each: string): string {
  return each.length > 1 ? each : `[${each}${each.toUpperCase()}]`;
}
