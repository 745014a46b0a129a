/**
 * Objects in a bucket of S3 or a compatible store.
 *
 * An upload becomes visible as a whole. If the answer is lost, it is retried under the same key, with the same bytes.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import { s3Client } from "../service/s3-client.ts";
import type { S3Place } from "../service/setting-values.ts";
import type { ObjectStore } from "./object-store.ts";

const TRIES = 4;
/** All tries together end long before the sweep may treat an object as abandoned. */
const TRY_MS = 10 * 60_000;
/** The maximum of one request. */
const REMOVED_AT_ONCE = 1_000;

export class S3Store implements ObjectStore {
  readonly location: string;
  readonly #bucket: string;
  readonly #prefix: string;
  /** A stream cannot be sent twice: requests are repeated here. */
  readonly #client: S3Client = s3Client(1);

  constructor(location: string, { bucket, prefix }: S3Place) {
    this.location = location;
    this.#bucket = bucket;
    this.#prefix = prefix;
  }

  addressOf(key: string): string {
    return `${this.location}/${key}`;
  }

  pathOf(): null {
    return null;
  }

  async put(key: string, file: string): Promise<void> {
    const { size } = await stat(file);
    await this.#patiently((abortSignal) =>
      this.#client.send(
        new PutObjectCommand({
          Bucket: this.#bucket,
          Key: this.#prefix + key,
          Body: createReadStream(file),
          ContentLength: size,
          ContentType: "application/json",
        }),
        { abortSignal },
      ),
    );
  }

  async has(key: string): Promise<boolean> {
    return await this.#patiently(async (abortSignal) => {
      try {
        const where = { Bucket: this.#bucket, Key: this.#prefix + key };
        await this.#client.send(new HeadObjectCommand(where), { abortSignal });
        return true;
      } catch (error) {
        if ((error as Error).name === "NotFound") return false;
        throw error;
      }
    });
  }

  async fetch(key: string, file: string): Promise<boolean> {
    return await this.#patiently(async (abortSignal) => {
      try {
        const where = { Bucket: this.#bucket, Key: this.#prefix + key };
        const { Body } = await this.#client.send(new GetObjectCommand(where), { abortSignal });
        await pipeline(Body as Readable, createWriteStream(file, { mode: 0o600 }), { signal: abortSignal });
        return true;
      } catch (error) {
        if ((error as Error).name === "NoSuchKey") return false;
        throw error;
      }
    });
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (let at = 0; at < keys.length; at += REMOVED_AT_ONCE) {
      const Objects = keys.slice(at, at + REMOVED_AT_ONCE).map((key) => ({ Key: this.#prefix + key }));
      const { Errors } = await this.#patiently((abortSignal) =>
        this.#client.send(
          new DeleteObjectsCommand({ Bucket: this.#bucket, Delete: { Objects, Quiet: true } }),
          { abortSignal },
        ),
      );
      const refused = Errors?.[0];
      if (refused) throw new Error(`${this.location}: ${refused.Code} ${refused.Message} (${refused.Key})`);
    }
  }

  close(): void {
    this.#client.destroy();
  }

  /** Only for repeatable requests. Permanent errors are not retried. */
  async #patiently<T>(ask: (abortSignal: AbortSignal) => Promise<T>): Promise<T> {
    for (let round = 1; ; round++) {
      try {
        return await ask(AbortSignal.timeout(TRY_MS));
      } catch (error) {
        if (isFinal(error) || round === TRIES) throw error;
        await sleep(200 * 4 ** (round - 1));
      }
    }
  }
}

/** Rejected, or not sent because keys or a region are missing. */
function isFinal(error: unknown): boolean {
  const { $metadata, message, name } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  if (status === undefined) return name === "CredentialsProviderError" || message === "Region is missing";
  return status < 500 && status !== 408 && status !== 429;
}
