import { createHmac } from "node:crypto";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SecretBox } from "./secret-box.ts";

let folder: string;
let keyFile: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tw-box-"));
  keyFile = join(folder, "secret.key");
});
afterEach(() => rm(folder, { recursive: true }));

describe("SecretBox", () => {
  it("opens what it sealed, for any text and context", () => {
    const box = new SecretBox([Buffer.alloc(32, 1)]);
    const text = fc.string({ unit: "grapheme" });
    fc.assert(
      fc.property(text, text, (plain, context) => box.open(box.seal(plain, context), context) === plain),
    );
  });

  it("rejects a sealed value with any changed byte, and any shortened one", () => {
    const box = new SecretBox([Buffer.alloc(32, 1)]);
    const sealed = box.seal("hunter2", "variable/a");
    for (let index = 0; index < sealed.length; index++) {
      const forged = Buffer.from(sealed);
      forged[index] = (forged[index] as number) ^ 1;
      expect(() => box.open(forged, "variable/a")).toThrow(/variable\/a/);
      expect(() => box.open(sealed.subarray(0, index), "variable/a")).toThrow(/variable\/a/);
    }
  });

  it("rejects a value moved to another row", () => {
    const box = new SecretBox([Buffer.alloc(32, 1)]);
    const sealed = box.seal("hunter2", "variable/a");
    expect(() => box.open(sealed, "variable/b")).toThrow(/belongs to another row/);
  });

  it("never seals the same text to the same bytes", () => {
    const box = new SecretBox([Buffer.alloc(32, 1)]);
    const seals = Array.from({ length: 1000 }, () => box.seal("x", "c").toString("hex"));
    expect(new Set(seals).size).toBe(1000);
  });

  it("creates its key file once, readable by the owner only", async () => {
    const [one, two] = await Promise.all([SecretBox.load(keyFile), SecretBox.load(keyFile)]);
    expect(one.open(two.seal("x", "c"), "c")).toBe("x");
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
  });

  it("rotates keys with a ring: the first seals, all open", async () => {
    const old = SecretBox.generateKey();
    const fresh = SecretBox.generateKey();
    const before = await SecretBox.load(keyFile, old);
    const during = await SecretBox.load(keyFile, `${fresh},${old}`);
    const after = await SecretBox.load(keyFile, fresh);
    expect(during.open(before.seal("x", "c"), "c")).toBe("x");
    expect(after.open(during.seal("x", "c"), "c")).toBe("x");
    expect(() => after.open(before.seal("x", "c"), "c")).toThrow(/not in the key ring/);
  });

  it("accepts ordinary base64 too, and names the source of an invalid key without showing it", async () => {
    const standard = Buffer.alloc(32, 255).toString("base64");
    expect((await SecretBox.load(keyFile, standard)).seal("x", "c").length).toBeGreaterThan(0);
    await expect(SecretBox.load(keyFile, "tooshort")).rejects.toThrow(/TRADEWIND_SECRET_KEY: key 1/);
    await expect(SecretBox.load(keyFile, "tooshort")).rejects.not.toThrow(/tooshort/);
    await writeFile(keyFile, "");
    await expect(SecretBox.load(keyFile)).rejects.toMatchObject({ code: "SECRET_KEY_INVALID" });
  });

  describe("signatures", () => {
    const box = new SecretBox([Buffer.alloc(32, 1)]);
    const signed = box.sign("orders", "webhook");

    it("are valid for their text, purpose and key only", () => {
      expect(box.isSigned("orders", "webhook", signed)).toBe(true);
      expect(box.isSigned("order", "webhook", signed)).toBe(false);
      expect(box.isSigned("orders", "other", signed)).toBe(false);
      expect(new SecretBox([Buffer.alloc(32, 2)]).isSigned("orders", "webhook", signed)).toBe(false);
      for (const other of ["", signed.slice(1), `${signed}AAAA`, "ä", `A${signed.slice(1)}`]) {
        expect([other, box.isSigned("orders", "webhook", other)]).toEqual([other, other === signed]);
      }
    });

    it("stay valid while their key is in the ring", () => {
      const turned = new SecretBox([Buffer.alloc(32, 3), Buffer.alloc(32, 1)]);
      expect(turned.isSigned("orders", "webhook", signed)).toBe(true);
      expect(turned.sign("orders", "webhook")).not.toBe(signed);
    });

    it("do not use the key that seals", () => {
      const plain = createHmac("sha256", Buffer.alloc(32, 1)).update("orders").digest("base64url");
      expect(signed).not.toBe(plain);
    });
  });
});
