import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { commandOf, curlOf } from "./command-text.ts";

it.each(["plain", "it's", "$(rm -rf /)", "a b", "--flag", "~", "", '"', "\\", "ünï", "a\nb", "`id`", "*"])(
  "passes %j through a shell unchanged",
  (text) => {
    const echo = commandOf("printf", "%s", text).replace(/^printf/, "printf --");
    expect(execFileSync("sh", ["-c", echo], { encoding: "utf8" })).toBe(text);
  },
);

it("leaves out words that are not set", () => {
  expect(commandOf("tradewind", "pools", "set", "gpu", 4, undefined, false)).toBe(
    "tradewind pools set gpu 4",
  );
});

it("writes a request with its body, and the token as a variable", () => {
  const text = curlOf(
    { method: "PATCH", path: "/api/v2/pools/gpu", body: { slots: 4 } },
    "https://tw.example",
  );
  expect(text).toBe(
    [
      "curl -X PATCH https://tw.example/api/v2/pools/gpu \\",
      '  -H "Authorization: Bearer $TRADEWIND_TOKEN" \\',
      "  -H 'Content-Type: application/json' \\",
      `  -d '{"slots":4}'`,
    ].join("\n"),
  );
});
