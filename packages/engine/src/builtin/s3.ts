/** Waits for objects in a bucket: one by its key or a pattern, or a number of them under a prefix. */
import {
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { S3KeyArgs, S3KeyEvent, S3PrefixArgs } from "@tradewind/sdk/builtin-triggers";
import { anyText, flag, members, orNull, text, whole } from "./argument-readers.ts";
import { globMatcher, hasWildcard, literalPrefix } from "./glob.ts";
import { listedKind, polledKind } from "./poll-loop.ts";
import { holdS3, s3Failure, statusOf } from "./s3-client.ts";
import type { Sight, Thing } from "./watches.ts";

const LOOKS_PER_BUCKET = 8;
/** Maximum number of keys in the event of a prefix. */
const MAX_KEYS = 1_000;

export const s3KeyKind = listedKind("tradewind.s3key", {
  args: members({
    bucket: text,
    key: text,
    wildcard: flag,
    connection: orNull(text),
    intervalMs: whole(1),
  }),
  intervalMs: ({ intervalMs }) => intervalMs,
  open: async (args, host, hide) => {
    const s3 = await holdS3(host, args.connection, hide);
    const isPattern = args.wildcard && hasWildcard(args.key);
    const objects = isPattern ? matchesOf : oneObject;
    const bucket = new Bucket(s3.client, args.bucket);
    return {
      place: `s3 ${args.connection ?? ""} ${args.bucket}`,
      limit: LOOKS_PER_BUCKET,
      none: isPattern
        ? `no key like s3://${args.bucket}/${args.key} yet`
        : `s3://${args.bucket}/${args.key} is not there yet`,
      things: (signal) => objects(bucket, args, signal),
      close: s3.release,
    };
  },
});

export const s3PrefixKind = polledKind("tradewind.s3prefix", {
  args: members({
    bucket: text,
    prefix: anyText,
    minCount: whole(1),
    connection: orNull(text),
    intervalMs: whole(1),
  }),
  intervalMs: ({ intervalMs }) => intervalMs,
  again: "changed",
  open: async (args, host, hide) => {
    const s3 = await holdS3(host, args.connection, hide);
    const bucket = new Bucket(s3.client, args.bucket);
    return {
      place: `s3 ${args.connection ?? ""} ${args.bucket}`,
      limit: LOOKS_PER_BUCKET,
      poll: (signal) => enoughObjects(bucket, args, signal),
      close: s3.release,
    };
  },
});

async function* oneObject(bucket: Bucket, { key }: S3KeyArgs, signal: AbortSignal): AsyncGenerator<Thing> {
  const event = await bucket.head(key, signal);
  if (event !== undefined) yield thingOf(event);
}

async function* matchesOf(bucket: Bucket, { key }: S3KeyArgs, signal: AbortSignal): AsyncGenerator<Thing> {
  const matches = globMatcher(key);
  for await (const event of bucket.list(literalPrefix(key), signal)) {
    if (matches(event.key)) yield thingOf(event);
  }
}

/** Written again it is another event. Only these fields are in both HEAD and list answers. */
function thingOf(event: S3KeyEvent): Thing {
  const { key, lastModified, size } = event;
  return { name: key, event: { ...event }, key: `${lastModified} ${size} ${key}` };
}

async function enoughObjects(
  bucket: Bucket,
  { prefix, minCount }: S3PrefixArgs,
  signal: AbortSignal,
): Promise<Sight> {
  const keys: string[] = [];
  let count = 0;
  for await (const { key } of bucket.list(prefix, signal)) {
    count++;
    if (keys.length < MAX_KEYS) keys.push(key);
    if (count >= minCount && keys.length === MAX_KEYS) break;
  }
  if (count >= minCount) return { event: { bucket: bucket.name, prefix, keys } };
  return { note: `${count} of ${minCount} keys at s3://${bucket.name}/${prefix}` };
}

class Bucket {
  readonly name: string;
  readonly #client: S3Client;
  #isKnown = false;

  constructor(client: S3Client, name: string) {
    this.#client = client;
    this.name = name;
  }

  async head(key: string, abortSignal: AbortSignal): Promise<S3KeyEvent | undefined> {
    const where = { Bucket: this.name, Key: key };
    try {
      const found = await this.#client.send(new HeadObjectCommand(where), { abortSignal });
      return this.#event(key, found.ContentLength, found.LastModified);
    } catch (error) {
      if (statusOf(error) !== 404) throw s3Failure(error, `s3://${this.name}/${key}`);
      // The answer to HEAD has no reason: a missing bucket would be awaited forever.
      await this.#mustExist(abortSignal);
      return undefined;
    }
  }

  /** In order of key. */
  async *list(prefix: string, abortSignal: AbortSignal): AsyncGenerator<S3KeyEvent> {
    let next: string | undefined;
    do {
      const where = { Bucket: this.name, Prefix: prefix, ContinuationToken: next };
      const page = await this.#client
        .send(new ListObjectsV2Command(where), { abortSignal })
        .catch((error: unknown) => {
          throw s3Failure(error, `s3://${this.name}/${prefix}`);
        });
      for (const { Key, Size, LastModified } of page.Contents ?? []) {
        if (Key !== undefined) yield this.#event(Key, Size, LastModified);
      }
      next = page.NextContinuationToken;
    } while (next !== undefined);
  }

  async #mustExist(abortSignal: AbortSignal): Promise<void> {
    if (this.#isKnown) return;
    const where = { Bucket: this.name };
    try {
      await this.#client.send(new HeadBucketCommand(where), { abortSignal });
    } catch (error) {
      // A user with access to one key only may not query the bucket.
      if (statusOf(error) !== 403) throw s3Failure(error, `bucket ${this.name}`);
    }
    this.#isKnown = true;
  }

  #event(key: string, size: number | undefined, modified: Date | undefined): S3KeyEvent {
    return {
      bucket: this.name,
      key,
      size: size ?? 0,
      lastModified: (modified ?? new Date(0)).toISOString(),
    };
  }
}
