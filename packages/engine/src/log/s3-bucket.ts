/** The requests to a bucket of logs. An object is written as a whole, and never with other content. */
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import { EngineError, messageOf } from "../service/errors.ts";
import { s3Client } from "../service/s3-client.ts";
import type { S3Place } from "../service/setting-values.ts";
import { LOG_STORE_UNAVAILABLE } from "./log-store.ts";

const TRIES = 3;
const TIMEOUT_MS = 10_000;
/** The maximum of one request. */
const REMOVED_AT_ONCE = 1_000;

export interface FoundObject {
  readonly name: string;
  /** In ms. */
  readonly modifiedAt: number;
}

export class S3Bucket {
  readonly #location: string;
  readonly #place: S3Place;
  readonly #client = s3Client(TRIES);

  constructor(location: string, place: S3Place) {
    this.#location = location;
    this.#place = place;
  }

  async *list(prefix: string): AsyncGenerator<FoundObject, void, undefined> {
    for await (const { Contents = [] } of this.#pages(prefix))
      for (const { Key = "", LastModified } of Contents)
        yield { name: Key.slice(this.#place.prefix.length), modifiedAt: LastModified?.getTime() ?? 0 };
  }

  /** The names between a prefix and the next "/". */
  async folders(prefix: string): Promise<string[]> {
    const names: string[] = [];
    for await (const { CommonPrefixes = [] } of this.#pages(prefix, "/"))
      for (const { Prefix = "" } of CommonPrefixes)
        names.push(Prefix.slice(this.#place.prefix.length + prefix.length, -1));
    return names;
  }

  /** null if it does not exist. */
  async get(name: string, from: number, to: number): Promise<Buffer | null> {
    return await this.#request(async (abortSignal) => {
      try {
        const range = { Range: `bytes=${from}-${to - 1}` };
        const command = new GetObjectCommand({ ...this.#named(name), ...range });
        const { Body } = await this.#client.send(command, { abortSignal });
        return Buffer.from(await Body!.transformToByteArray());
      } catch (error) {
        if ((error as Error).name === "NoSuchKey") return null;
        throw error;
      }
    });
  }

  async put(name: string, bytes: Buffer): Promise<void> {
    const content = { Body: bytes, ContentType: "application/x-ndjson" };
    const command = new PutObjectCommand({ ...this.#named(name), ...content });
    await this.#request((abortSignal) => this.#client.send(command, { abortSignal }));
  }

  async remove(names: readonly string[]): Promise<void> {
    for (let at = 0; at < names.length; at += REMOVED_AT_ONCE) {
      const Objects = names
        .slice(at, at + REMOVED_AT_ONCE)
        .map((name) => ({ Key: this.#place.prefix + name }));
      const Delete = { Objects, Quiet: true };
      const command = new DeleteObjectsCommand({ Bucket: this.#place.bucket, Delete });
      const { Errors } = await this.#request((abortSignal) => this.#client.send(command, { abortSignal }));
      const refused = Errors?.[0];
      if (refused) throw this.#unavailable(new Error(`${refused.Code} ${refused.Message} (${refused.Key})`));
    }
  }

  close(): void {
    this.#client.destroy();
  }

  async *#pages(prefix: string, delimiter?: string): AsyncGenerator<ListObjectsV2CommandOutput> {
    const wanted = {
      Bucket: this.#place.bucket,
      Prefix: this.#place.prefix + prefix,
      ...(delimiter && { Delimiter: delimiter }),
    };
    for (let after: string | undefined = ""; after !== undefined; ) {
      const command: ListObjectsV2Command = new ListObjectsV2Command({
        ...wanted,
        ...(after && { ContinuationToken: after }),
      });
      const page = await this.#request((abortSignal) => this.#client.send(command, { abortSignal }));
      yield page;
      after = page.IsTruncated ? page.NextContinuationToken : undefined;
    }
  }

  #named(name: string) {
    return { Bucket: this.#place.bucket, Key: this.#place.prefix + name };
  }

  async #request<T>(send: (abortSignal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await send(AbortSignal.timeout(TIMEOUT_MS));
    } catch (error) {
      throw this.#unavailable(error);
    }
  }

  #unavailable(cause: unknown): EngineError {
    return new EngineError(
      LOG_STORE_UNAVAILABLE,
      `The log store ${this.#location} does not answer, or rejects the request: ${messageOf(cause)}. Look at the store (tradewind doctor).`,
      { cause },
    );
  }
}
