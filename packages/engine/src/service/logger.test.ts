import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { EngineError } from "./errors.ts";
import { createLogger, type LoggerOptions } from "./logger.ts";

describe("createLogger", () => {
  it("writes one JSON object per line, with the fields of its parents", () => {
    const { logger, lines } = capture({ format: "json" });
    logger.child({ service: "api" }).child({ run: 7 }).info("hello\nworld", { message: "not this", n: 1n });
    expect(lines().map((line) => JSON.parse(line))).toEqual([
      {
        service: "api",
        run: 7,
        n: "1",
        level: "info",
        message: "hello\nworld",
        time: expect.stringMatching(/Z$/),
      },
    ]);
  });

  it("omits entries below its level", () => {
    const { logger, lines } = capture({ format: "json", level: "warn" });
    logger.debug("a");
    logger.info("b");
    logger.warn("c");
    logger.error("d");
    expect(lines().map((line) => JSON.parse(line).message)).toEqual(["c", "d"]);
  });

  it("logs errors with their code and cause", () => {
    const { logger, lines } = capture({ format: "json" });
    const error = new EngineError("SOME_CODE", "it broke", { cause: new Error("because") });
    logger.error("failed", { error });
    expect(JSON.parse(lines()[0] as string).error).toMatchObject({
      code: "SOME_CODE",
      message: "it broke",
      cause: { message: "because" },
    });
  });

  it("is readable, and prevents forged lines and cursor movement", () => {
    const { logger, lines } = capture({ format: "pretty" });
    logger.warn("bad\n00:00:00.000 INFO  forged \u001b[2J", { dag: "sales", text: "a b", list: [1] });
    expect(lines()).toEqual([
      expect.stringMatching(
        /^\d\d:\d\d:\d\d\.\d{3} WARN {2}bad\\n00:00:00\.000 INFO {2}forged \\u001b\[2J dag=sales text="a b" list=\[1\]$/,
      ),
    ]);
  });

  it("shows the stack of an error below the line", () => {
    const { logger, lines } = capture({ format: "pretty" });
    logger.error("failed", { error: new Error("it broke") });
    expect(lines()[0]).toMatch(/ERROR failed error="it broke"$/);
    expect(lines()[1]).toMatch(/^ {4}Error: it broke$/);
  });

  it("prints a field of several lines below its entry, indented, and prevents forged entries", () => {
    const { logger, lines } = capture({ format: "pretty" });
    const frame =
      'a.ts:3:5: Unexpected "="\n\n> 3 | \tx = = 1\r\n    | \t    ^\n\u001b[2J00:00:00.000 INFO  forged\n';
    logger.warn("DAG file failed to import", { error: frame, file: "a.ts" });
    logger.warn("again", { error: new Error("one\ntwo") });
    expect(lines()).toEqual([
      expect.stringMatching(/WARN {2}DAG file failed to import file=a\.ts$/),
      "    error=",
      '    a.ts:3:5: Unexpected "="',
      "",
      "    > 3 | \tx = = 1",
      "        | \t    ^",
      "    \\u001b[2J00:00:00.000 INFO  forged",
      expect.stringMatching(/WARN {2}again$/),
      "    error=",
      "    one",
      "    two",
    ]);
  });

  it("survives values that have no JSON, and a closed output stream", () => {
    const { logger, lines, stream } = capture({ format: "json" });
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    logger.info("cycle", { cycle });
    expect(lines()[0]).toMatch(/cannot be logged/);
    stream.destroy(new Error("EPIPE"));
    logger.info("lost");
  });
});

function capture(options: LoggerOptions) {
  const stream = new PassThrough();
  let text = "";
  stream.on("data", (chunk) => {
    text += chunk;
  });
  const lines = () => text.split("\n").slice(0, -1);
  return { logger: createLogger({ ...options, stream }), stream, lines };
}
