import { expect, it } from "vitest";
import { triggerBody, triggerCommand } from "./trigger-request.ts";

const input = { dagId: "sales", conf: {}, logicalDate: "", note: " " };

it("sends only what is set", () => {
  expect(triggerBody(input)).toEqual({ logical_date: null });
  expect(triggerBody({ ...input, conf: { a: 1 }, logicalDate: "2026-11-16T02:00", note: "why" })).toEqual({
    ...{ conf: { a: 1 }, logical_date: "2026-11-16T02:00:00Z", note: "why" },
  });
  expect(triggerBody({ ...input, logicalDate: "2026-11-16T02:00:30" }).logical_date).toBe(
    "2026-11-16T02:00:30Z",
  );
});

it("has a command that does the same", () => {
  expect(triggerCommand(input)).toBe("tradewind dags trigger sales");
  expect(triggerCommand({ ...input, conf: { a: "x" }, logicalDate: "2026-11-16T02:00", note: "it's" })).toBe(
    `tradewind dags trigger sales --conf '{"a":"x"}' --logical-date 2026-11-16T02:00:00Z --note 'it'\\''s'`,
  );
});
