/**
 * A log in a bucket: objects below the key of the log, named by the range of bytes that they hold,
 * `<key>/<start>-<end>`. A byte of a log has the same value in all objects that hold it, so objects may overlap, and be
 * written twice or late.
 */

import type { StoredLog } from "./log-store.ts";
import type { S3Bucket } from "./s3-bucket.ts";

export interface Piece {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** Enough for 1 TB, so that the names of pieces are ordered like their starts. */
const DIGITS = 12;
const RELISTED = 3;

export class S3Log implements StoredLog {
  readonly key: string;
  readonly size: number;
  readonly modifiedAt: number;
  readonly #bucket: S3Bucket;
  /** By start; none is contained in another. */
  #pieces: readonly Piece[];

  constructor(bucket: S3Bucket, key: string, found: readonly (Piece & { readonly modifiedAt: number })[]) {
    this.#bucket = bucket;
    this.key = key;
    this.modifiedAt = found.reduce((latest, each) => Math.max(latest, each.modifiedAt), 0);
    this.#pieces = necessary(found);
    this.size = this.last?.end ?? 0;
  }

  get last(): Piece | undefined {
    return this.#pieces.at(-1);
  }

  async read(from: number, to: number): Promise<Buffer> {
    for (let tries = 0; ; tries++) {
      const bytes = await this.#read(from, to);
      if (bytes !== null) return bytes;
      // A piece has been replaced by a longer one, or the log was deleted.
      const [log] = tries < RELISTED ? await Array.fromAsync(listLogs(this.#bucket, `${this.key}/`)) : [];
      if (log === undefined) return Buffer.alloc(0);
      this.#pieces = log.#pieces;
    }
  }

  /** null: a piece does not exist any more. */
  async #read(from: number, to: number): Promise<Buffer | null> {
    // An expiry rule of the bucket may have deleted old pieces. Readers skip empty lines.
    const bytes = Buffer.alloc(to - from, "\n");
    const wanted = this.#pieces.filter(({ start, end }) => start < to && end > from);
    const found = await Promise.all(
      wanted.map(async (piece) => {
        const first = Math.max(from, piece.start);
        const name = pieceName(this.key, piece);
        const part = await this.#bucket.get(name, first - piece.start, Math.min(to, piece.end) - piece.start);
        part?.copy(bytes, first - from);
        return part !== null;
      }),
    );
    return found.includes(false) ? null : bytes;
  }
}

export function pieceName(key: string, { end, start }: Piece): string {
  return `${key}/${String(start).padStart(DIGITS, "0")}-${String(end).padStart(DIGITS, "0")}`;
}

/** The logs whose objects begin with a prefix. A bucket lists the objects of a log one after the other. */
export async function* listLogs(bucket: S3Bucket, prefix: string): AsyncGenerator<S3Log, void, undefined> {
  let key = "";
  let pieces: (Piece & { readonly modifiedAt: number })[] = [];
  for await (const { name, modifiedAt } of bucket.list(prefix)) {
    const [, found = "", start, end] = /^(.+\.log)\/(\d{12})-(\d{12})$/.exec(name) ?? [];
    if (found === "") continue;
    if (found !== key && pieces.length > 0) yield new S3Log(bucket, key, pieces);
    if (found !== key) pieces = [];
    key = found;
    pieces.push({ start: Number(start), end: Number(end), modifiedAt });
  }
  if (pieces.length > 0) yield new S3Log(bucket, key, pieces);
}

function necessary(pieces: readonly Piece[]): Piece[] {
  const kept: Piece[] = [];
  for (const piece of pieces.toSorted((a, b) => a.start - b.start || b.end - a.end))
    if (piece.end > (kept.at(-1)?.end ?? 0)) kept.push(piece);
  return kept;
}
