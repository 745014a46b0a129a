import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { errorText } from "../check/wording.ts";
import { errorFacts } from "./error-facts.ts";

describe("the message of an error", () => {
  test("includes the cause of a fetch that cannot connect", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    const error = await fetch(`http://127.0.0.1:${port}`).catch((thrown: unknown) => thrown);
    const facts = errorFacts(error);
    expect(facts).toMatchObject({
      name: "TypeError",
      message: `fetch failed (cause: connect ECONNREFUSED 127.0.0.1:${port})`,
    });
    expect(errorText(facts).match(/fetch failed/g)).toHaveLength(1);
  });

  test("includes the causes of causes, also values that are not errors", () => {
    const inner = new Error("query failed", { cause: { status: 503 } });
    const { message } = errorFacts(new Error("load failed", { cause: inner }));
    expect(message).toBe('load failed (cause: query failed (cause: {"status":503}))');
    expect(errorFacts(new Error("", { cause: "no disk" })).message).toBe("Error (cause: no disk)");
  });

  test("omits a cause that the message repeats", () => {
    const cause = new Error("disk full");
    expect(errorFacts(new Error("cannot save: disk full", { cause })).message).toBe("cannot save: disk full");
    cause.cause = cause;
    expect(errorFacts(cause).message).toBe("disk full");
  });

  test("limits the number and the length of causes", () => {
    const chain = Array.from({ length: 20 }, (_, n) => n).reduceRight<Error | undefined>(
      (cause, n) => new Error(`error ${n};`, { cause }),
      undefined,
    );
    const { message } = errorFacts(chain);
    expect(message).toContain("error 5;");
    expect(message).not.toContain("error 6;");
    const long = new Error("load failed", { cause: new Error("word ".repeat(1_000)) });
    expect(errorFacts(long).message).toMatch(
      /^load failed \(cause: (word ){99,100}\.\.\. \(\d+ more characters\)\)$/,
    );
  });

  test("never shows a part of a word of a long cause: half a secret would not be masked", () => {
    const cause = new Error(`${"a ".repeat(245)}password-of-the-database more`);
    expect(errorFacts(new Error("load failed", { cause })).message).not.toContain("password");
  });
});
