import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findTarget } from "./target.ts";

const home = mkdtempSync(join(tmpdir(), "tradewind-target-"));
beforeAll(() => {
  writeFileSync(join(home, "standalone.json"), JSON.stringify({ url: "http://127.0.0.1:8123", pid: 4711 }));
  writeFileSync(join(home, "token"), "tw_home\n");
});
afterAll(() => rmSync(home, { recursive: true }));

it("finds the standalone of the home", () => {
  expect(findTarget({ home }, {})).toEqual({ url: "http://127.0.0.1:8123", token: "tw_home", pid: 4711 });
  expect(findTarget({}, { TRADEWIND_HOME: home }).url).toBe("http://127.0.0.1:8123");
});

it("prefers the flag to the environment, and both to the home", () => {
  const env = { TRADEWIND_URL: "https://env.example/", TRADEWIND_TOKEN: "tw_env" };
  expect(findTarget({ home }, env)).toEqual({ url: "https://env.example", token: "tw_env", pid: undefined });
  expect(findTarget({ home, url: "http://flag.example:1/api/v2/", token: "tw_flag" }, env)).toEqual({
    url: "http://flag.example:1",
    token: "tw_flag",
    pid: undefined,
  });
});

it("sends the home's token to this machine only", () => {
  expect(findTarget({ home, url: "http://localhost:9999" }, {}).token).toBe("tw_home");
  expect(findTarget({ home, url: "http://elsewhere.example" }, {}).token).toBeUndefined();
  expect(findTarget({ home, url: "http://127.0.0.1.elsewhere.example" }, {}).token).toBeUndefined();
});

it("names the remedy if there is no server", () => {
  expect(() => findTarget({ home: join(home, "none") }, {})).toThrowError(
    expect.objectContaining({
      code: "TW_CLI_NO_SERVER",
      exit: 6,
      remedy: expect.stringContaining("tradewind standalone"),
    }),
  );
});

it("rejects an invalid address", () => {
  for (const url of ["localhost:8080", "ftp://x", "nonsense"]) {
    expect(() => findTarget({ url }, {})).toThrowError(expect.objectContaining({ exit: 2 }));
  }
});
