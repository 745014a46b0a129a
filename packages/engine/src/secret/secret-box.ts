import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { readFile } from "node:fs/promises";
import { EngineError } from "../service/errors.ts";
import { createOnce } from "../service/private-file.ts";

/**
 * Seals secrets for the database with AES-256-GCM. The context (which table, row and field) is authenticated with the
 * value, so a sealed value copied to another row does not open there.
 *
 * Several keys form a ring: the first one seals, all of them open. To change the key put a new one in front and keep
 * the old one until every value has been written again.
 *
 * Layout: version (1), key id (4), nonce (12), tag (16), ciphertext.
 */
export class SecretBox {
  readonly #ring: readonly RingKey[];
  /** Derived keys, by key and purpose: as objects, because a signature with the bytes of a key takes four times as long. */
  readonly #derived = new Map<string, KeyObject>();

  constructor(keys: readonly Buffer[]) {
    const bad = keys.length === 0 || keys.some((key) => key.length !== KEY_BYTES);
    if (bad) throw new EngineError("SECRET_KEY_INVALID", `A secret key must have ${KEY_BYTES} bytes.`);
    this.#ring = keys.map((key) => ({ key, id: keyId(key) }));
  }

  /** From TRADEWIND_SECRET_KEY if set, else from the key file, which is created if missing. */
  static async load(keyFile: string, fromEnvironment?: string): Promise<SecretBox> {
    if (fromEnvironment !== undefined && fromEnvironment !== "") {
      return new SecretBox(parseRing(fromEnvironment, "TRADEWIND_SECRET_KEY"));
    }
    await createOnce(keyFile, () => SecretBox.generateKey());
    return new SecretBox(parseRing(await readFile(keyFile, "utf8"), keyFile));
  }

  static generateKey(): string {
    return randomBytes(KEY_BYTES).toString("base64url");
  }

  seal(plain: string, context: string): Buffer {
    const { key, id } = this.#ring[0] as RingKey;
    const header = Buffer.concat([Buffer.of(VERSION), id]);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(authenticated(header, context));
    const text = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
    return Buffer.concat([header, nonce, cipher.getAuthTag(), text]);
  }

  /** @param whose The name of the value in the error, as the beginning of a sentence. */
  open(sealed: Buffer, context: string, whose = `The secret value of ${context}`): string {
    if (sealed.length < PREFIX_BYTES || sealed[0] !== VERSION)
      throw unreadable(whose, "is not a sealed value", context);
    const header = sealed.subarray(0, HEADER_BYTES);
    const held = this.#keyOf(header);
    if (held === undefined)
      throw unreadable(whose, "was sealed with a key that is not in the key ring of this service", context);
    const nonce = sealed.subarray(header.length, header.length + NONCE_BYTES);
    const tag = sealed.subarray(header.length + NONCE_BYTES, PREFIX_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", held.key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(authenticated(header, context));
    decipher.setAuthTag(tag);
    try {
      return Buffer.concat([decipher.update(sealed.subarray(PREFIX_BYTES)), decipher.final()]).toString(
        "utf8",
      );
    } catch (cause) {
      throw unreadable(whose, "was changed, or belongs to another row", context, cause);
    }
  }

  /** True if it has the key of a value with this header (`HEADER_BYTES`). */
  holdsKeyOf(header: Buffer): boolean {
    return header[0] === VERSION && this.#keyOf(header) !== undefined;
  }

  /** Proves to any holder of the key that this installation wrote the text. A signature is valid for one purpose only. */
  sign(text: string, purpose: string): string {
    return this.#signature(this.#ring[0] as RingKey, text, purpose).toString("base64url");
  }

  /** By any key of the ring: older signatures are valid until their key is removed. */
  isSigned(text: string, purpose: string, signed: string): boolean {
    const given = Buffer.from(signed, "base64url");
    return this.#ring.some((key) => {
      const expected = this.#signature(key, text, purpose);
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  }

  /** With a separate key for each purpose, from which the key of the ring cannot be derived. */
  #signature({ id, key }: RingKey, text: string, purpose: string): Buffer {
    const name = `${id.toString("hex")} ${purpose}`;
    let own = this.#derived.get(name);
    if (own === undefined) {
      const bytes = hkdfSync("sha256", key, Buffer.alloc(0), `tradewind/${purpose}`, KEY_BYTES);
      own = createSecretKey(new Uint8Array(bytes));
      this.#derived.set(name, own);
    }
    return createHmac("sha256", own).update(text, "utf8").digest();
  }

  #keyOf(header: Buffer): RingKey | undefined {
    return this.#ring.find(({ id }) => id.equals(header.subarray(1)));
  }
}

export const SECRET_UNREADABLE = "SECRET_UNREADABLE";

const VERSION = 1;
const KEY_BYTES = 32;
const ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The part of a sealed value that identifies its key: version and key id. */
export const HEADER_BYTES = 1 + ID_BYTES;
const PREFIX_BYTES = HEADER_BYTES + NONCE_BYTES + TAG_BYTES;

interface RingKey {
  readonly key: Buffer;
  readonly id: Buffer;
}

function keyId(key: Buffer): Buffer {
  return createHash("sha256").update(key).digest().subarray(0, ID_BYTES);
}

function authenticated(header: Buffer, context: string): Buffer {
  return Buffer.concat([header, Buffer.from(context, "utf8")]);
}

function parseRing(text: string, source: string): Buffer[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const keys = parts.map((part) => Buffer.from(part, "base64url"));
  const bad = keys.findIndex(
    (key, index) => key.length !== KEY_BYTES || !/^[\w+/-]+=*$/.test(parts[index] ?? ""),
  );
  if (keys.length > 0 && bad === -1) return keys;
  throw new EngineError(
    "SECRET_KEY_INVALID",
    `${source}: key ${bad + 1} is not ${KEY_BYTES} bytes in base64. Make one with: openssl rand -base64 32. Several keys, newest first, are separated by commas.`,
  );
}

function unreadable(whose: string, why: string, context: string, cause?: unknown): EngineError {
  return new EngineError(
    SECRET_UNREADABLE,
    `${whose} ${why}. Give all services the same secret key: TRADEWIND_SECRET_KEY, or a copy of one secret.key. If its key is lost, set the value again.`,
    { details: { context }, cause },
  );
}
