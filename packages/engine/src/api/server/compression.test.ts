import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { createApi } from "./api.ts";

let tw: Installation;
let app: Awaited<ReturnType<typeof createApi>>;

beforeAll(async () => {
  tw = await Installation.open();
  app = await createApi(tw.options);
});
afterAll(() => app.close());

const get = (url: string, encoding?: string) =>
  app.inject({
    url,
    headers: {
      authorization: `Bearer ${tw.token}`,
      ...(encoding === undefined ? {} : { "accept-encoding": encoding }),
    },
  });

describe("a large answer", () => {
  it("is compressed for clients that accept it", async () => {
    const [plain, compressed] = [await get("/openapi.json"), await get("/openapi.json", "gzip, deflate, br")];
    expect([plain.headers["content-encoding"], plain.headers["vary"]]).toEqual([
      undefined,
      "accept-encoding",
    ]);
    expect(compressed.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
    expect(Number(compressed.headers["content-length"])).toBe(compressed.rawPayload.length);
    expect(compressed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 4);
    expect(gunzipSync(compressed.rawPayload).toString()).toBe(plain.body);
  });

  it("is not compressed for a client that rejects it", async () => {
    for (const encoding of ["identity", "gzip;q=0", "br"])
      expect((await get("/openapi.json", encoding)).headers["content-encoding"]).toBeUndefined();
  });
});

it("sends small answers as they are", async () => {
  const { headers } = await get("/api/v2/version", "gzip");
  expect([headers["content-encoding"], headers["vary"]]).toEqual([undefined, undefined]);
});
