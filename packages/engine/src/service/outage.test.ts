import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { createLogger } from "./logger.ts";
import { Outage } from "./outage.ts";

it("logs a failure once, a different failure too, and the recovery", () => {
  const lines: string[] = [];
  const stream = new Writable({
    write: (chunk, _, done) => {
      const { error, message } = JSON.parse(String(chunk)) as { message: string; error?: string };
      lines.push(error ? `${message}: ${error}` : message);
      done();
    },
  });
  const outage = new Outage(createLogger({ stream, format: "json", level: "info" }), "look");
  outage.passed();
  for (const why of ["away", "away", "starting", "starting"]) outage.failed(new Error(why));
  outage.passed();
  outage.passed();
  outage.failed(new Error("starting"));
  expect(lines).toEqual([
    "cannot look: away",
    "cannot look: starting",
    "can look again",
    "cannot look: starting",
  ]);
});
