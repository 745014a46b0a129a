/**
 * Masks secrets by name. Arguments of triggers are plain JSON in the database; authors should name a connection there, but some
 * write a password.
 */
import type { Json } from "@tradewind/sdk/manifest";

/** Names of secrets. Not plain "key", which usually names an object in S3 or Redis. */
export const SENSITIVE =
  /pass(word|wd|phrase)|secret|token|api_?key|private_?key|access_?key|authorization|credential|keyfile/i;

const HIDDEN = "***";
const ALSO = /^(?:cookie|set-cookie|signature|sig|dsn)$|api-key|signature$/i;

/** The value with every secret masked, found by its key or its place in a URL. */
export function maskSecrets(value: Json): Json {
  if (typeof value === "string") return maskUrls(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(maskSecrets);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      isSecret(key) && item !== null ? HIDDEN : maskSecrets(item),
    ]),
  );
}

function isSecret(name: string): boolean {
  return SENSITIVE.test(name) || ALSO.test(name);
}

/** `//user:password@host`, `?token=…`. */
function maskUrls(text: string): string {
  return text
    .replace(/:\/\/[^/?#\s@]*:[^/?#\s]*@/g, `://${HIDDEN}@`)
    .replace(/([?&]([\w.-]+)=)[^&#\s]*/g, (whole, start: string, name: string) =>
      isSecret(name) ? `${start}${HIDDEN}` : whole,
    );
}
