/**
 * Certificates and keys of both ends, as files. They are read and validated once, when a server or client is created:
 * otherwise invalid files would show as failing connections with nothing but an error number.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ChannelCredentials, ServerCredentials } from "@grpc/grpc-js";
import { EngineError, messageOf } from "../../service/errors.ts";

/** Paths of PEM files. */
export interface ServerTls {
  /** The server's certificate, followed by the intermediate certificates. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The CA that must have signed the certificate of every client. Omitted: clients need no certificate. */
  readonly ca?: string | undefined;
}

/** Paths of PEM files. */
export interface ClientTls {
  /** The CA that must have signed the server's certificate. Omitted: the CAs that Node trusts. */
  readonly ca?: string | undefined;
  /** For a server that requires a client certificate. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export function isGiven(tls: ServerTls | ClientTls): boolean {
  return tls.cert !== undefined || tls.key !== undefined || tls.ca !== undefined;
}

/** @throws SIGNAL_TLS_INVALID */
export function serverCredentials(tls: ServerTls): ServerCredentials {
  if (!isGiven(tls)) return ServerCredentials.createInsecure();
  const pair = readPair(tls);
  if (pair === null) {
    throw refused(`${tls.ca} verifies client certificates, but the server has no certificate itself`);
  }
  const roots = tls.ca === undefined ? null : readCertificates(tls.ca);
  return ServerCredentials.createSsl(
    roots,
    [{ cert_chain: pair.cert, private_key: pair.key }],
    roots !== null,
  );
}

/** @throws SIGNAL_TLS_INVALID */
export function clientCredentials(tls: ClientTls): ChannelCredentials {
  const roots = tls.ca === undefined ? null : readCertificates(tls.ca);
  const pair = readPair(tls);
  return ChannelCredentials.createSsl(roots, pair?.key ?? null, pair?.cert ?? null);
}

/** One end does not accept a certificate of the other: retrying would not help. */
export function isTlsFailure(details: string): boolean {
  return /certificate|SSL routines|wrong version number/i.test(details);
}

/** The reason in plain words, with the remedy, instead of the messages of OpenSSL and gRPC. */
export function tlsReason(details: string): string {
  for (const [pattern, reason] of REASONS) if (pattern.test(details)) return reason;
  // The original message, without the internals of gRPC.
  const said = /Last error: (.*?)(?:\. Resolution note:|$)/s.exec(details)?.[1] ?? details;
  return `${said
    .replace(/^Error: /, "")
    .split("\n")[0]!
    .slice(0, 200)}.`;
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /wrong version number|packet length too long|record layer failure/i,
    "it does not speak TLS. Write the address with grpc://, or give it a certificate with --tls-cert.",
  ],
  [/has expired/i, "a certificate has expired. Renew it."],
  [
    /does not match certificate's altnames|ERR_TLS_CERT_ALTNAME/i,
    "its certificate is for other names. Use a name that is in it, or another certificate.",
  ],
  [
    /alert (?:number 116|certificate required)|certificate required/i,
    "it requires a client certificate. Give one with tls.cert and tls.key.",
  ],
  [
    /alert (?:unknown ca|bad certificate|number 4[268])|unknown ca/i,
    "it does not accept the client's certificate. Give one that is signed by its --tls-ca.",
  ],
  [
    /self.signed certificate|unable to (?:verify|get)/i,
    "its certificate is not signed by a CA that this client trusts. Give the CA that signed it with tls.ca (TRADEWIND_SIGNALS_CA).",
  ],
];

export function tlsFailure(address: string, why: string, cause: unknown): EngineError {
  return new EngineError("SIGNAL_TLS_INVALID", `TLS with the signal service at ${address} failed: ${why}`, {
    cause,
  });
}

function readPair({ cert, key }: ClientTls): { readonly cert: Buffer; readonly key: Buffer } | null {
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined) throw refused(`the key ${key} has no certificate: give both`);
  if (key === undefined) throw refused(`the certificate ${cert} has no key: give both`);
  const pair = { cert: readCertificates(cert), key: readPem(key) };
  let parsed: KeyObject;
  try {
    parsed = createPrivateKey(pair.key);
  } catch (error) {
    throw refused(`${key} holds no private key in PEM without a passphrase: ${messageOf(error)}`, error);
  }
  if (!new X509Certificate(pair.cert).checkPrivateKey(parsed)) {
    throw refused(`the key ${key} does not belong to the certificate ${cert}`);
  }
  return pair;
}

/** One certificate, or several concatenated. */
function readCertificates(path: string): Buffer {
  const pem = readPem(path);
  const found = pem.toString("latin1").match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs);
  if (found === null) throw refused(`${path} holds no certificate in PEM`);
  for (const [at, each] of found.entries()) {
    try {
      new X509Certificate(each);
    } catch (error) {
      throw refused(`certificate ${at + 1} of ${path} cannot be read: ${messageOf(error)}`, error);
    }
  }
  return pem;
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw refused(`${path} cannot be read: ${messageOf(error)}`, error);
  }
}

function refused(why: string, cause?: unknown): EngineError {
  return new EngineError("SIGNAL_TLS_INVALID", `The signal service cannot use TLS: ${why}.`, { cause });
}
