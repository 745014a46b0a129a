import { expect, it } from "vitest";
import { messageOf } from "./errors.ts";

it("joins the messages of an AggregateError that has none of its own", () => {
  const refused = ["::1", "127.0.0.1"].map((host) => new Error(`connect ECONNREFUSED ${host}:5432`));
  expect(messageOf(new AggregateError(refused))).toBe(
    "connect ECONNREFUSED ::1:5432; connect ECONNREFUSED 127.0.0.1:5432",
  );
  expect(messageOf(new AggregateError(refused, "no host answers"))).toBe("no host answers");
  expect(messageOf("thrown")).toBe("thrown");
});
