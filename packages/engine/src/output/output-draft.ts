/**
 * An output while a child sends it: written to a file in pieces, and counted, hashed and indexed on the way. It is never
 * in memory as a whole.
 */
import { createHash } from "node:crypto";
import { createWriteStream, type WriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import { finished } from "node:stream/promises";
import { JsonItems } from "../model/index.ts";
import { makeFolder } from "../service/home.ts";

export interface DraftFacts {
  readonly bytes: number;
  readonly sha256: string;
  readonly items: number | null;
}

/** What the sender of an output says about it. */
export type SentFacts = Pick<DraftFacts, "bytes" | "sha256">;

export class OutputDraft {
  readonly path: string;
  readonly #most: number;
  readonly #sent: SentFacts | undefined;
  readonly #hash = createHash("sha256");
  readonly #items = new JsonItems();
  #stream: WriteStream | null = null;
  #bytes = 0;
  #failure: Error | null = null;

  /**
   * @param most Maximum size in bytes: a broken child must not fill the disk.
   * @param sent What has to arrive.
   */
  constructor(path: string, most: number, sent?: SentFacts) {
    this.path = path;
    this.#most = most;
    this.#sent = sent;
  }

  /** Errors are reported by `finish`. */
  async open(): Promise<void> {
    try {
      await makeFolder(dirname(this.path));
    } catch (error) {
      this.#failure = error as Error;
      return;
    }
    // Flushed before it is closed: a rename must not become durable before the bytes.
    this.#stream = createWriteStream(this.path, { flags: "wx", mode: 0o600, flush: true });
    this.#stream.on("error", (error) => {
      this.#failure ??= error;
    });
  }

  /** Resolves when there is room for more. */
  async write(piece: string | Buffer): Promise<void> {
    const stream = this.#stream;
    if (this.#failure !== null || stream === null) return;
    const bytes = typeof piece === "string" ? Buffer.from(piece, "utf8") : piece;
    this.#bytes += bytes.length;
    if (this.#bytes > this.#most) {
      this.#failure = new Error(`it has more than ${this.#most} bytes`);
      return;
    }
    this.#hash.update(bytes);
    this.#items.push(bytes);
    await new Promise<void>((resolve) => stream.write(bytes, () => resolve()));
  }

  /** @throws if it could not be written, is not what was sent, or is not valid JSON. */
  async finish(): Promise<DraftFacts> {
    const stream = this.#stream;
    if (stream !== null && this.#failure === null) {
      stream.end();
      await finished(stream).catch((error: Error) => {
        this.#failure ??= error;
      });
    }
    if (this.#failure !== null) throw this.#failure;
    const [bytes, sha256] = [this.#bytes, this.#hash.digest("hex")];
    if (this.#sent && (this.#sent.bytes !== bytes || this.#sent.sha256 !== sha256))
      throw new Error("it did not arrive as it was sent");
    if (!this.#items.isWhole || this.#items.isTooDeep)
      throw new Error("the task's process sent invalid JSON");
    return { bytes, sha256, items: this.#items.count };
  }

  async discard(): Promise<void> {
    this.#stream?.destroy();
    await rm(this.path, { force: true }).catch(() => {});
  }
}
