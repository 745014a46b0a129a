/** The text of a large output, or of an item in it, read from its file in pieces. */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import { ItemCut, JsonItems } from "../model/index.ts";
import type { HeldCopy } from "./local-copies.ts";

interface Range {
  readonly start: number;
  /** Exclusive; null: the end of the file. */
  readonly end: number | null;
}

const WHOLE: Range = { start: 0, end: null };

/** The byte range of an item; null if there is none. */
export async function rangeOf(
  copy: Pick<HeldCopy, "path" | "items">,
  path: readonly number[],
): Promise<Range | null> {
  let range = WHOLE;
  for (const [level, index] of path.entries()) {
    // There is no index inside an item: its first item begins after its bracket.
    const near = level === 0 ? copy.items.before(index) : { index: 0, offset: range.start + 1 };
    const found = await cut(copy.path, near.offset, index - near.index);
    if (found === null) return null;
    range = found;
  }
  return range;
}

async function cut(path: string, start: number, skip: number): Promise<Range | null> {
  const knife = new ItemCut(skip);
  let offset = start;
  let from: number | null = null;
  for await (const piece of createReadStream(path, { start, highWaterMark: 16 * 1024 })) {
    const bytes = piece as Buffer;
    const taken = knife.consume(bytes);
    if (from === null && taken.from < bytes.length) from = offset + taken.from;
    const end = offset + taken.to;
    if (taken.isEnd) return from === null || from >= end ? null : { start: from, end };
    offset += bytes.length;
  }
  return null;
}

/** Bytes per read. */
const LOOK = 16 * 1024;

/** The text of an item of the list itself, if one read is enough: most are short, and there may be 100,000 of them. */
export async function shortItem(
  copy: Pick<HeldCopy, "path" | "items">,
  index: number,
): Promise<string | null> {
  const near = copy.items.before(index);
  const file = await open(copy.path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(LOOK), 0, LOOK, near.offset);
    const { from, isEnd, to } = new ItemCut(index - near.index).consume(buffer.subarray(0, bytesRead));
    return isEnd && from < to ? buffer.toString("utf8", from, to) : null;
  } finally {
    await file.close();
  }
}

/** As JSON text, in pieces that split no character. */
export async function* textOf(path: string, { end, start }: Range): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  const last = end === null ? {} : { end: end - 1 };
  for await (const piece of createReadStream(path, { start, ...last, highWaterMark: 64 * 1024 })) {
    const text = decoder.write(piece as Buffer);
    if (text !== "") yield text;
  }
}

/** How many items an item has; null if it is no list. */
export async function itemsIn(path: string, { end, start }: Range): Promise<number | null> {
  const items = new JsonItems();
  const last = end === null ? {} : { end: end - 1 };
  for await (const piece of createReadStream(path, { start, ...last })) items.push(piece as Buffer);
  return items.count;
}
