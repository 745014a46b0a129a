/**
 * Finds the positions of the items of a list in its JSON without parsing them, so that a list of 100,000 items can be read
 * item by item. Accepts UTF-8 in chunks of any size; every byte that is significant in JSON is ASCII.
 *
 * Its memory is bounded: of a long list it remembers only every second, fourth, ... place. An item is found by reading from
 * the last place before it.
 */

/** Maximum number of remembered places. */
const MOST_PLACES = 65_536;

/** Deeper than the SDK allows. */
const MAX_DEPTH = 1_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/** A known place in the list: item `index` begins at `offset`. */
export interface ItemPlace {
  readonly index: number;
  readonly offset: number;
}

export class JsonItems {
  /** The number of items that have begun; 0 for a text that is not a list. */
  #count = 0;
  /** null: only white space so far. */
  #isList: boolean | null = null;
  #depth = 0;
  #inText = false;
  #isEscaped = false;
  #isAwaiting = false;
  #offset = 0;
  #stride = 1;
  #places: number[] = [];
  #isTooDeep = false;

  /** The next chunk of the text. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (this.#inText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#inText = false;
        continue;
      }
      if (byte <= SPACE) continue;
      this.#isList ??= byte === OPEN_LIST;
      if (this.#isAwaiting && byte !== CLOSE_LIST) this.#begins(this.#offset + at);
      if (byte === QUOTE) this.#inText = true;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        if (++this.#depth > MAX_DEPTH) this.#isTooDeep = true;
        this.#isAwaiting = this.#isList && this.#depth === 1;
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        this.#isAwaiting = false;
        this.#depth--;
      } else if (byte === COMMA && this.#isList && this.#depth === 1) this.#isAwaiting = true;
    }
    this.#offset += bytes.length;
  }

  /** The number of items so far; null: not a list. */
  get count(): number | null {
    return this.#isList === true ? this.#count : null;
  }

  /** Nested more deeply than a value that can be written again. */
  get isTooDeep(): boolean {
    return this.#isTooDeep;
  }

  /** Every opened bracket is closed. */
  get isWhole(): boolean {
    return !this.#inText && this.#depth === 0 && this.#isList !== null;
  }

  /** The last remembered place at or before an item. */
  before(index: number): ItemPlace {
    const nth = Math.min(Math.floor(index / this.#stride), this.#places.length - 1);
    return { index: nth * this.#stride, offset: this.#places[nth] ?? 0 };
  }

  #begins(offset: number): void {
    this.#isAwaiting = false;
    if (this.#count % this.#stride === 0) this.#places.push(offset);
    this.#count++;
    if (this.#places.length <= MOST_PLACES) return;
    this.#places = this.#places.filter((_, nth) => nth % 2 === 0);
    this.#stride *= 2;
  }
}

/** Finds the end of the item that begins at the first byte, after skipping `skip` items. */
export class ItemCut {
  #skip: number;
  #depth = 0;
  #inText = false;
  #isEscaped = false;

  constructor(skip = 0) {
    this.#skip = skip;
  }

  /** The bytes of this chunk that belong to the item, and whether the item ends in it. */
  consume(bytes: Uint8Array): { readonly from: number; readonly to: number; readonly isEnd: boolean } {
    let from = this.#skip === 0 ? 0 : bytes.length;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (this.#inText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#inText = false;
      } else if (byte === QUOTE) this.#inText = true;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#depth++;
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        // The end of the enclosing list.
        if (this.#depth === 0) return { from, to: at, isEnd: true };
        this.#depth--;
      } else if (byte === COMMA && this.#depth === 0) {
        if (this.#skip === 0) return { from, to: at, isEnd: true };
        this.#skip--;
        if (this.#skip === 0) from = at + 1;
      }
    }
    return { from, to: bytes.length, isEnd: false };
  }
}
