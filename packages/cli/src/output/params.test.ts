import { expect, it } from "vitest";
import { z } from "zod";
import { paramLines } from "./params.ts";

it("shows the type of each param, and whether it is required or has a default", () => {
  const schema = z.toJSONSchema(
    z.object({
      region: z.enum(["eu", "us"]).default("eu"),
      limit: z.number().int().describe("orders at once"),
      note: z.string().optional(),
      dates: z.array(z.string()).nullable().default(null),
    }),
    { io: "input" },
  );
  expect(paramLines(schema)).toEqual([
    'region: "eu" | "us", default "eu"',
    "limit: integer, required (orders at once)",
    "note: string",
    "dates: any, default null",
  ]);
});

it.each([null, undefined, true, {}, { type: "array" }, { properties: { a: true } }])(
  "shows no params for %j",
  (schema) => {
    expect(paramLines(schema).join()).toMatch(/^(?:a: any)?$/);
  },
);
