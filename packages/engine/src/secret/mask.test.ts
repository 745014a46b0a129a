import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MaskStream, SecretMask } from "./mask.ts";
import { connectionSecrets, secretForms, variableSecrets } from "./secret-forms.ts";

describe("SecretMask", () => {
  test("masks a secret split at every offset, in every form", () => {
    const secret = 'p4ss "wörd" \\ 1+2';
    for (const form of secretForms(secret)) {
      if (form.length < 5) continue;
      const text = `before ${form} after`;
      for (let at = 0; at <= text.length; at++) {
        const stream = new MaskStream(maskOf(secret));
        const out = stream.push(text.slice(0, at)) + stream.push(text.slice(at)) + stream.end();
        expect(out).toBe("before *** after");
      }
    }
  });

  test("equals the plain definition for any chunking of the text", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "c", "A"), minLength: 5, maxLength: 9 });
    const secrets = fc.array(letters, { minLength: 1, maxLength: 4 });
    const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "A", "x", " "), maxLength: 80 });
    const cuts = fc.array(fc.nat(80), { maxLength: 12 });
    fc.assert(
      fc.property(secrets, text, cuts, (hidden, around, at) => {
        const body = around + hidden.join("") + around;
        const stream = new MaskStream(maskOf(...hidden));
        const out = pieces(body, at).map((piece) => stream.push(piece));
        expect(out.join("") + stream.end()).toBe(plainly(body, hidden));
      }),
      { numRuns: 2_000 },
    );
  });

  test("no form of any secret survives", () => {
    const secret = fc
      .string({ unit: "binary", minLength: 5, maxLength: 30 })
      .filter((text) => text.trim().length >= 5);
    fc.assert(
      fc.property(secret, fc.nat(60), (hidden, at) => {
        const mask = maskOf(hidden);
        for (const form of secretForms(hidden)) {
          if (form.length < 5) continue;
          const stream = new MaskStream(mask);
          const text = `<${form}>`;
          const out = stream.push(text.slice(0, at)) + stream.push(text.slice(at)) + stream.end();
          expect(out).not.toContain(form);
        }
      }),
      { numRuns: 500 },
    );
  });

  const TRICKY = `s3cr&t <tag> "q" 'a' \u00fc=%/`;
  const html = (text: string, quote: string, apostrophe: string) =>
    text
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll('"', quote)
      .replaceAll("'", apostrophe);
  const spelt = (text: string, units: RegExp) =>
    text.replace(units, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  test.each([
    ["hex in capitals", Buffer.from(TRICKY).toString("hex").toUpperCase()],
    ["HTML", html(TRICKY, "&quot;", "&#39;")],
    ["HTML with other numbers", html(TRICKY, "&quot;", "&#x27;")],
    ["HTML of XML", html(TRICKY, "&quot;", "&apos;")],
    ["a URL in a URL", encodeURIComponent(encodeURIComponent(TRICKY))],
    ["JSON in ASCII", spelt(JSON.stringify(TRICKY).slice(1, -1), /[^ -~]/g)],
    ["JSON for HTML", spelt(JSON.stringify(TRICKY).slice(1, -1), /[^ -~]|[<>&']/g)],
    ["nothing but \\uXXXX", spelt(TRICKY, /[\s\S]/g)],
    ["colours", [...TRICKY].join("\u001b[1;31m")],
    ["a link of a terminal", TRICKY.replace("t", "\u001b]8;;http://x\u0007t")],
  ])("masks a secret in %s for any chunking", (_, text) => {
    for (let at = 0; at <= text.length; at++) {
      const stream = new MaskStream(maskOf(TRICKY));
      const out = stream.push(`<${text.slice(0, at)}`) + stream.push(`${text.slice(at)}>`) + stream.end();
      expect(out).toBe("<***>");
    }
  });

  test("masks wrapped base64 and wrapped hex of a long secret, and keeps the lines around it", () => {
    const secret = Array.from({ length: 400 }, (_, n) => String.fromCharCode(33 + ((n * 37) % 90))).join("");
    const mask = maskOf(secret);
    for (const encoding of ["base64", "hex"] as const) {
      for (const prefix of ["", "u:", "user:"]) {
        const encoded = Buffer.from(`${prefix}${secret}`).toString(encoding);
        for (const width of [60, 64, 76]) {
          for (const end of ["\n", "\r\n", "\\n", "\n    "]) {
            const wrapped = encoded.replace(new RegExp(`(.{${width}})`, "g"), `$1${end}`);
            const out = mask.whole(`before\n${wrapped}\nafter`);
            expect(out).toMatch(/^before\n/);
            expect(out).toMatch(/\nafter$/);
            // Of the prefix, the shared characters, and a few before the first break.
            expect(out.length).toBeLessThan(40);
          }
        }
      }
    }
  });

  test("masks the encoded forms of a secret of 8,000 characters within a second of CPU time", () => {
    const secret = Array.from({ length: 8_000 }, (_, n) => String.fromCharCode(33 + ((n * n * 7) % 90))).join(
      "",
    );
    const before = process.threadCpuUsage();
    const mask = maskOf(secret);
    for (const encoding of ["base64", "base64url", "hex"] as const)
      expect(mask.whole(`<${Buffer.from(secret).toString(encoding)}>`)).toBe("<***>");
    expect(process.threadCpuUsage(before).user / 1_000).toBeLessThan(1_000);
  });

  test("does not delay a line that ends with a whole secret, or with the beginning of one", () => {
    const stream = new MaskStream(maskOf("correct-horse-battery"));
    expect(stream.push("login correct-horse-battery\n")).toBe("login ***\n");
    expect(stream.push("abc\n")).toBe("abc\n");
  });

  test("masks the secret in base64 of a text that contains it, at any alignment", () => {
    const secret = "correct-horse-battery";
    for (const login of ["", "u", "us", "use"]) {
      for (const encoding of ["base64", "base64url"] as const) {
        const text = Buffer.from(`${login}:${secret}:tail`).toString(encoding);
        const out = maskOf(secret).whole(text);
        expect(out).toContain("***");
        expect(Buffer.from(out.replace("***", ""), encoding).toString()).not.toContain("horse");
        expect(out.length).toBeLessThan(text.length - 20);
      }
    }
  });

  test("masks a key of several lines line by line, printed or escaped", () => {
    const key = "-----BEGIN KEY-----\nMIIabcdefghijk\nlmnopqrstuvwxyz\n-----END KEY-----\n";
    const mask = maskOf(key);
    expect(mask.whole(JSON.stringify({ key }))).not.toMatch(/MII|lmno/);
    expect(mask.whole(key.replaceAll("\n", "\n    "))).not.toMatch(/MII|lmno/);
  });

  test("masks a secret that is added while its beginning is held back", () => {
    const mask = maskOf("first-secret");
    const stream = new MaskStream(mask);
    expect(stream.push("a first-sec")).toBe("a ");
    mask.add("first-second");
    expect(stream.push("ond b") + stream.end()).toBe("*** b");
  });

  test("rejects short values, and masks nothing without secrets", () => {
    const mask = new SecretMask();
    expect(mask.add("abcd")).toBe(false);
    expect(mask.add("   a    ")).toBe(false);
    expect(mask.whole("abcd")).toBe("abcd");
  });
});

describe("secrets", () => {
  const connection = { id: "c", type: "t", host: "host.example", port: 1, login: "login-name", schema: null };

  test("a connection's password and the strings of its extra", () => {
    const extra = { a: "one-secret", b: ["two-secret", { c: "three-secret" }], d: 4, e: "false" };
    const found = connectionSecrets({ ...connection, password: "the-password", extra });
    expect(found).toEqual(["the-password", "one-secret", "two-secret", "three-secret"]);
  });

  test("a variable by its key, and the strings inside its JSON", () => {
    expect(variableSecrets("region", "eu-west-1")).toEqual([]);
    for (const key of ["DB_PASSWORD", "apiToken", "client-secret", "access_key"]) {
      expect(variableSecrets(key, "a value")).toEqual(["a value"]);
    }
    expect(variableSecrets("token", '{"a":"inside-json"}')).toContain("inside-json");
  });
});

function maskOf(...secrets: readonly string[]): SecretMask {
  const mask = new SecretMask();
  for (const secret of secrets) mask.add(secret);
  return mask;
}

function pieces(text: string, cuts: readonly number[]): string[] {
  const at = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

/** The definition: mark every character of every occurrence, then print each marked stretch as one mask. */
function plainly(text: string, secrets: readonly string[]): string {
  const marked = new Array<boolean>(text.length).fill(false);
  for (const form of secrets.flatMap((secret) => [...secretForms(secret)])) {
    if (form.length < 5) continue;
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1))
      marked.fill(true, at, at + form.length);
  }
  return [...text].map((char, at) => (marked[at] ? (marked[at - 1] ? "" : "***") : char)).join("");
}
