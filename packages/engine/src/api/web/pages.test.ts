/** The files of the web UI: what is served, with which headers, and nothing else. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { createApi } from "../server/api.ts";

const PAGE = `<!doctype html><html><head><meta charset="utf-8" /><base href="/" /><script type="module" src="./assets/index-1a2b3c4d.js"></script></head></html>`;
const SCRIPT = `export const text = "${"x".repeat(4_000)}";`;

let tw: Installation;
let root: string;
let app: FastifyInstance;

beforeAll(async () => {
  tw = await Installation.open();
  root = await mkdtemp(join(tmpdir(), "tw-web-"));
  await build("dist", PAGE);
  await writeFile(join(root, "secret.txt"), "not for browsers");
  await symlink(join(root, "secret.txt"), join(root, "dist", "linked.txt"));
  app = await createApi({ ...tw.options, webFolder: join(root, "dist") });
  return () => app.close();
});
afterAll(() => rm(root, { recursive: true, force: true }));

async function build(folder: string, page: string): Promise<void> {
  await mkdir(join(root, folder, "assets"), { recursive: true });
  await writeFile(join(root, folder, "assets", "index-1a2b3c4d.js"), SCRIPT);
  await writeFile(join(root, folder, "assets", "inter-9f8e7d6c.woff2"), Buffer.alloc(2_000, 7));
  await writeFile(join(root, folder, "icon.svg"), "<svg/>");
  await writeFile(join(root, folder, "index.html"), page);
}

const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

describe("pages", () => {
  it("are one page for every address outside of the API, without a token", async () => {
    for (const url of [
      "/",
      "/dags",
      "/dags/etl/runs/r%2F1?tab=graph",
      "/assets",
      "/assets/s3%3A%2F%2Fx",
      "/apis",
    ]) {
      const response = await get(url, HTML);
      expect([url, response.statusCode, response.headers["content-type"]]).toEqual([
        url,
        200,
        "text/html; charset=utf-8",
      ]);
      expect(response.body).toBe(PAGE);
      expect(response.headers).toMatchObject({
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
      });
    }
    expect(
      (await app.inject({ method: "HEAD", url: "/dags", headers: HTML })).headers["content-type"],
    ).toMatch(/^text\/html/);
  });

  it("allow no inline scripts, no other origin and no frame around them", async () => {
    const policy = String((await get("/", HTML)).headers["content-security-policy"]);
    const directives = new Map(
      policy.split("; ").map((each) => [each.split(" ", 1)[0], each.split(" ").slice(1)]),
    );
    expect(directives.get("script-src")).toEqual(["'self'"]);
    expect(directives.get("connect-src")).toEqual(["'self'"]);
    expect(directives.get("frame-ancestors")).toEqual(["'none'"]);
    const sources = new Set([...directives.values()].flat());
    expect([...sources].sort()).toEqual(["'none'", "'self'", "'unsafe-inline'", "blob:", "data:"]);
  });

  it("are not sent for paths of the API, for other methods, or to programs", async () => {
    for (const url of ["/api/v2/nothing", "/api", "/execution/v1/nothing", "/ui/nothing", "/ui"]) {
      expect([url, (await get(url, HTML)).statusCode]).toEqual([url, 401]);
      const known = await get(url, { ...HTML, authorization: `Bearer ${tw.token}` });
      expect([url, known.statusCode, known.json().code]).toEqual([url, 404, "NOT_FOUND"]);
    }
    expect((await app.inject({ method: "POST", url: "/dags", headers: HTML })).statusCode).toBe(401);
    const program = await get("/dags", { accept: "*/*" });
    expect([program.statusCode, program.json().detail]).toEqual([404, "There is no GET /dags"]);
  });

  it("have the base path of the public URL", async () => {
    const config = { ...tw.options.config, publicUrl: "https://example.com/a&b/flows" };
    const based = await createApi({ ...tw.options, config, webFolder: join(root, "dist") });
    onTestFinished(() => based.close());
    for (const url of ["/", "/dags", "/a&b/flows", "/a&b/flows/", "/a&b/flows/dags?x=1"]) {
      const { body } = await based.inject({ url, headers: HTML });
      expect([url, /<base[^>]*>/.exec(body)?.[0]]).toEqual([url, '<base href="/a&amp;b/flows/" />']);
    }
    expect((await based.inject("/a&b/flows/assets/index-1a2b3c4d.js")).body).toBe(SCRIPT);
  });

  it("are the new ones after a build, and explain how to build the UI if there is none", async () => {
    const folder = join(root, "later");
    const later = await createApi({ ...tw.options, webFolder: folder });
    onTestFinished(() => later.close());
    const missing = await later.inject({ url: "/", headers: HTML });
    expect([missing.statusCode, missing.headers["content-type"]]).toEqual([503, "text/html; charset=utf-8"]);
    expect(missing.body).toContain("<pre>npm run build:web</pre>");
    await build("later", PAGE);
    expect((await later.inject({ url: "/", headers: HTML })).body).toBe(PAGE);
    await rm(folder, { recursive: true });
    await build("later", PAGE.replaceAll("1a2b3c4d", "00000000"));
    await writeFile(join(folder, "assets", "index-00000000.js"), "2");
    expect((await later.inject({ url: "/", headers: HTML })).body).toContain("index-00000000.js");
    expect((await later.inject("/assets/index-00000000.js")).body).toBe("2");
    expect((await later.inject("/assets/index-1a2b3c4d.js")).statusCode).toBe(200);
  });
});

describe("files", () => {
  it("are cached indefinitely if their name has a hash, and otherwise validated", async () => {
    const script = await get("/assets/index-1a2b3c4d.js");
    expect([script.statusCode, script.body]).toEqual([200, SCRIPT]);
    expect(script.headers).toMatchObject({
      "cache-control": "public, max-age=31536000, immutable",
      "content-type": "text/javascript; charset=utf-8",
      vary: "accept-encoding",
    });
    // A script may be that of a worker, which connects to the API.
    expect(script.headers["content-security-policy"]).toContain("connect-src 'self'");
    const icon = await get("/icon.svg");
    expect(icon.headers).toMatchObject({
      "cache-control": "no-cache",
      "content-type": "image/svg+xml; charset=utf-8",
    });
    expect(icon.headers["content-security-policy"]).toContain("default-src 'none'");
  });

  it.each([
    ["gzip, deflate, br, zstd", "br"],
    ["gzip;q=1.0, br;q=0", "gzip"],
    ["identity", undefined],
    [undefined, undefined],
  ])("are compressed for %s", async (accepted, encoding) => {
    const response = await get("/assets/index-1a2b3c4d.js", accepted ? { "accept-encoding": accepted } : {});
    expect(response.headers["content-encoding"]).toBe(encoding);
    const decode =
      encoding === "br" ? brotliDecompressSync : encoding === "gzip" ? gunzipSync : (body: Buffer) => body;
    expect(decode(response.rawPayload).toString()).toBe(SCRIPT);
    if (encoding !== undefined) expect(response.rawPayload.length).toBeLessThan(SCRIPT.length / 10);
    expect(Number(response.headers["content-length"])).toBe(response.rawPayload.length);
  });

  it("that are compressed already are sent as they are", async () => {
    const font = await get("/assets/inter-9f8e7d6c.woff2", { "accept-encoding": "br" });
    expect(font.headers).toMatchObject({ "content-type": "font/woff2" });
    expect([font.headers["content-encoding"], font.rawPayload.length]).toEqual([undefined, 2_000]);
  });

  it("outside of the build cannot be read", async () => {
    const url = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
    /** The raw path, which clients would normalise. */
    const raw = (path: string) =>
      new Promise<string>((resolve, reject) => {
        let text = "";
        const socket = connect(Number(url.port), url.hostname, () =>
          socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\naccept: */*\r\nconnection: close\r\n\r\n`),
        );
        socket.setEncoding("utf8").on("data", (piece) => {
          text += piece;
        });
        socket.on("end", () => resolve(text)).on("error", reject);
      });
    const paths = [
      "/../secret.txt",
      "/..%2fsecret.txt",
      "/%2e%2e/secret.txt",
      "/assets/../../secret.txt",
      "/assets/%2e%2e%2f%2e%2e%2fsecret.txt",
      "/..\\secret.txt",
      "/..%5csecret.txt",
      "//secret.txt",
      "/assets//..//..//secret.txt",
      `/${root}/secret.txt`,
      `/%2f${root.slice(1)}/secret.txt`,
      "/secret.txt%00.js",
      "/linked.txt",
      "/assets",
      "/assets/",
    ];
    for (const path of paths) {
      const text = await raw(path);
      expect([path, text.split("\r\n")[0]]).toEqual([path, expect.stringMatching(/^HTTP\/1\.1 40[04] /)]);
      expect(text).not.toContain("not for browsers");
    }
    expect(await raw("/assets/index-1a2b3c4d.js")).toContain(SCRIPT);
  });
});
