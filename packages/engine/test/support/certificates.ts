/**
 * Certificates for tests, generated on the fly: none expires or has to be kept in the repository. Node can sign but not
 * create certificates, so this module writes the few parts of X.509 that TLS checks.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  readonly name: string;
  readonly privateKey: KeyObject;
}

/** Without `by`: self-signed, and may sign others. Valid for `localhost` and 127.0.0.1, for an hour. */
export function certificate(name: string, by?: TestCertificate): TestCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const now = Date.now();
  const facts = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    named(by?.name ?? name),
    sequence(time(now - HOUR), time(now + HOUR)),
    named(name),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(extension("551d13", sequence(...(by ? [] : [TRUE]))), extension("551d11", NAMES))),
  );
  const signature = sign("sha256", facts, by?.privateKey ?? privateKey);
  const whole = sequence(facts, ECDSA_SHA256, tagged(0x03, Buffer.from([0]), signature));
  const text = whole.toString("base64").replaceAll(/.{64}(?=.)/g, "$&\n");
  return {
    name,
    privateKey,
    cert: `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  };
}

const HOUR = 3_600_000;

function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), content]);
  // DER allows only the shortest form; Go's TLS checks it.
  const head = length < 256 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), content]);
}

function sequence(...parts: readonly Uint8Array[]): Buffer {
  return tagged(0x30, ...parts);
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

function objectId(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, "hex"));
}

/** A name that consists of a common name only. */
function named(name: string): Buffer {
  return sequence(tagged(0x31, sequence(objectId("550403"), tagged(0x0c, Buffer.from(name)))));
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14);
  return tagged(0x17, Buffer.from(`${text}Z`));
}

function extension(id: string, content: Buffer): Buffer {
  return sequence(objectId(id), tagged(0x04, content));
}

const ECDSA_SHA256 = sequence(objectId("2a8648ce3d040302"));
const TRUE = tagged(0x01, Buffer.from([255]));
const NAMES = sequence(tagged(0x82, Buffer.from("localhost")), tagged(0x87, Buffer.from([127, 0, 0, 1])));
