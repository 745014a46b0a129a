/** Parsers for the texts of settings: each returns the value, or throws the problem. */
import { isAbsolute, resolve } from "node:path";
import { namesIn, problemOf } from "./user-environment.ts";

/** The problem with a value; the caller puts the name of the setting before it. */
export class Unfit extends Error {}

export function folder(text: string, cwd: string): string {
  if (text === "" || text.includes("\0")) throw new Unfit("must name a folder.");
  return resolve(cwd, text);
}

export function file(text: string, cwd: string): string {
  if (text === "" || text.includes("\0")) throw new Unfit("must name a file.");
  return resolve(cwd, text);
}

export function host(text: string): string {
  if (!/^[\w.:%-]+$/.test(text)) {
    throw new Unfit(
      `is ${JSON.stringify(text)}: it must be a host name or an address, such as 127.0.0.1 or 0.0.0.0.`,
    );
  }
  return text;
}

/** The address of a signal service over gRPC: host and port, nothing else. */
export function isGrpcAddress(text: string): boolean {
  return /^grpcs?:\/\/[^/?#@\s]+\/?$/.test(text) && URL.canParse(text);
}

/** A module is named by its path; anything else must be an address. */
export function signalService(text: string, cwd: string): string {
  if (text === "postgres" || isGrpcAddress(text)) return text;
  if (/^\w+:\/\//.test(text) || text.includes("\0"))
    throw new Unfit(`must be postgres, grpc://host:port, or the path of a module.`);
  return resolve(cwd, text);
}

/**
 * `file:` alone stands for a folder of the home, which may move. A relative path would be another folder for each
 * process, and references to it are stored.
 */
export function storeLocation(text: string, cwd: string): string {
  if (text.startsWith("file:") && !text.includes("\0")) {
    const path = text.slice(5).replace(/^\/\/(?=\/)/, "");
    if (path === "") return "file:";
    if (isAbsolute(path)) return `file:${resolve(path)}`;
    throw new Unfit(
      `is ${JSON.stringify(text)}: the folder needs its whole path, such as file:${resolve(cwd, path)}.`,
    );
  }
  if (/^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[^?#\s]*)?$/.test(text)) return text.replace(/\/+$/, "");
  throw new Unfit(`is ${JSON.stringify(text)}: it must be file:/folder or s3://bucket/prefix.`);
}

/** A place in a bucket. */
export interface S3Place {
  readonly bucket: string;
  /** Empty, or with a slash at its end. */
  readonly prefix: string;
}

/** null: the location of a store is no bucket. */
export function s3Place(location: string): S3Place | null {
  const [, bucket, prefix = ""] = /^s3:\/\/([^/]+)(?:\/(.*?))?\/*$/.exec(location) ?? [];
  if (bucket === undefined) return null;
  return { bucket, prefix: prefix === "" ? "" : `${prefix}/` };
}

export function whole(text: string, least: number, most: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new Unfit(`is ${JSON.stringify(text)}: it must be a whole number from ${least} to ${most}.`);
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds. */
export function duration(text: string, most: number): number {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * (UNIT_MS[unit] ?? Number.NaN));
  if (ms >= 0 && ms <= most) return ms;
  throw new Unfit(`is ${JSON.stringify(text)}: it must be a duration up to 24h, such as 30s, 10m or 0s.`);
}

export function names(text: string): string[] {
  const found = [...new Set(text.split(",").map((name) => name.trim()))];
  if (found.every((name) => /^[\w.-]{1,250}$/.test(name))) return found;
  throw new Unfit(
    `is ${JSON.stringify(text)}: it must be names with commas between them, such as default,slow.`,
  );
}

export function allowList(text: string): string[] {
  const problem = problemOf(text);
  if (problem === null) return namesIn(text);
  throw new Unfit(problem);
}

export function oneOf<T extends string>(text: string, choices: readonly T[]): T {
  const choice = choices.find((each) => each === text.toLowerCase());
  if (choice !== undefined) return choice;
  throw new Unfit(`is ${JSON.stringify(text)}: it must be one of ${choices.join(", ")}.`);
}

/** The message never contains the value, which may hold a password. */
export function publicUrl(text: string): string {
  const shape = "must be the API's address for others, without a query: https://tradewind.example.com.";
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "")
    throw new Unfit(shape);
  return url.href.replace(/\/+$/, "");
}

/** The public URL of the server that also serves the web UI. */
export function serverUrl(text: string): string {
  const url = publicUrl(text);
  const [, first] = new URL(url).pathname.split("/");
  if (OWN_PATHS.has(first ?? ""))
    throw new Unfit(
      `has a path that begins with /${first}, which the server uses itself: choose another path.`,
    );
  return url;
}

const OWN_PATHS = new Set(["api", "assets", "execution", "ui"]);

export function databaseUrl(text: string): string {
  const shape = "must be a PostgreSQL URL: postgresql://user:password@host:5432/name.";
  if (!URL.canParse(text)) throw new Unfit(shape);
  const { protocol } = new URL(text);
  if (protocol !== "postgresql:" && protocol !== "postgres:")
    throw new Unfit(`starts with ${protocol}//: it ${shape}`);
  return text;
}

export function redisUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && (url.protocol === "redis:" || url.protocol === "rediss:")) return text;
  throw new Unfit(
    "is not the address of a Redis: give redis://[user:password@]host[:port][/database], or rediss:// for TLS.",
  );
}
