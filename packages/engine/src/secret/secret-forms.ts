/**
 * The forms in which a secret commonly appears in a log: inside JSON, with or without \uXXXX, in a URL or in a nested
 * URL, in HTML, in base64 (at any of the three alignments, e.g. the password in an `Authorization: Basic` header) and in
 * hex.
 */

import { inspect } from "node:util";
import type { Json } from "@tradewind/sdk/manifest";
import type { ConnectionFacts } from "@tradewind/sdk/program";

/** Longer secrets have only line-wise forms: an automaton per attempt must stay small. */
const MAX_ENCODED_LENGTH = 8_192;
/** The same limit for a form with six characters per character of the secret. */
const MAX_SPELT_LENGTH = 512;
/** Number of base64 characters that may be alone before a line break; the rest is masked without them. */
const CUT_OFF = 3;

const SECRET_KEY = /pass(word|wd|phrase)|secret|token|key|credential/i;

/** Values that are never secrets although they are long enough; masking them would make logs unreadable. */
const PLAIN = new Set(["false", "undefined", "localhost"]);

/** All forms to search for, the value itself first. */
export function secretForms(secret: string): Set<string> {
  const forms = new Set<string>();
  // A key in several lines is printed, indented or escaped line by line: each line is a separate secret.
  const lines = secret.split(/\r?\n/).map((line) => line.trim());
  if (lines.length > 1) for (const line of lines) addForms(forms, line);
  addForms(forms, secret);
  return forms;
}

/** The secrets of a connection that a task has read: its password and every string of its extra. */
export function connectionSecrets(connection: ConnectionFacts): string[] {
  const found: string[] = connection.password === null ? [] : [connection.password];
  collectStrings(connection.extra, found);
  return found.filter((value) => !PLAIN.has(value));
}

/** The secrets of a variable that a task has read: its value, and the strings inside if it is JSON. */
export function variableSecrets(key: string, value: string): string[] {
  if (!SECRET_KEY.test(key)) return [];
  const found = [value];
  collectStrings(parsed(value), found);
  return found.filter((text) => !PLAIN.has(text));
}

function addForms(forms: Set<string>, text: string): void {
  forms.add(text);
  const inJson = JSON.stringify(text).slice(1, -1);
  forms.add(inJson);
  // A string in JSON in a string in JSON: an error message with a body, logged as a field.
  forms.add(JSON.stringify(inJson).slice(1, -1));
  // As `console.log({ password })` quotes it.
  forms.add(inspect(text, { breakLength: Number.POSITIVE_INFINITY, maxStringLength: null }).slice(1, -1));
  const wellFormed = text.toWellFormed();
  const inUrl = encodeURIComponent(wellFormed);
  forms.add(inUrl);
  forms.add(inUrl.replaceAll("%20", "+"));
  forms.add(inUrl.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()));
  forms.add(new URLSearchParams([["", wellFormed]]).toString().slice(1));
  forms.add(encodeURIComponent(inUrl));
  addEscaped(forms, text, inJson);
  if (text.length > MAX_ENCODED_LENGTH) return;
  const bytes = Buffer.from(text, "utf8");
  const hex = bytes.toString("hex");
  forms.add(hex);
  forms.add(hex.toUpperCase());
  for (const encoding of ["base64", "base64url"] as const) {
    forms.add(bytes.toString(encoding));
    for (const offset of [0, 1, 2]) {
      const core = alignedCore(bytes, offset, encoding);
      forms.add(core);
      if (core.length > MIN_WRAPPED) forms.add(core.slice(CUT_OFF));
    }
  }
}

/** Minimum number of characters in a line of wrapped base64. */
const MIN_WRAPPED = 16;

function addEscaped(forms: Set<string>, text: string, inJson: string): void {
  for (const [quote, apostrophe] of HTML_QUOTES) {
    const escapes: Record<string, string> = {
      '"': quote,
      "'": apostrophe,
      "&": "&amp;",
      "<": "&lt;",
      ">": "&gt;",
    };
    forms.add(text.replace(/["'&<>]/g, (character) => escapes[character] as string));
  }
  // The forms of serializers that escape non-ASCII characters, and of serializers for HTML.
  for (const pattern of [/[^ -~]/g, /[^ -%(-;=?-~]/g]) addSpelt(forms, inJson, pattern);
  if (text.length <= MAX_SPELT_LENGTH) addSpelt(forms, text, /[\s\S]/g);
}

const HTML_QUOTES = [
  ["&quot;", "&#39;"],
  ["&quot;", "&#x27;"],
  ["&quot;", "&apos;"],
  ["&#34;", "&#39;"],
  ['"', "'"],
] as const;

/** With \uXXXX escapes, in upper and lower case. */
function addSpelt(forms: Set<string>, text: string, pattern: RegExp): void {
  const spell = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const spelt = text.replace(pattern, spell);
  forms.add(spelt);
  forms.add(text.replace(pattern, (unit) => `\\u${spell(unit).slice(2).toUpperCase()}`));
}

/** The characters of a base64 text that depend on the secret only, if `offset` other bytes precede it. */
function alignedCore(bytes: Buffer, offset: number, encoding: "base64" | "base64url"): string {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString(encoding);
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor(((offset + bytes.length) * 8) / 6);
  return text.slice(first, last);
}

function collectStrings(value: Json | undefined, into: string[]): void {
  if (typeof value === "string") into.push(value);
  else if (Array.isArray(value)) for (const item of value) collectStrings(item, into);
  else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) collectStrings(item as Json, into);
  }
}

function parsed(text: string): Json | undefined {
  if (!/^\s*[[{"]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
