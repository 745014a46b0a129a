import { expect, it } from "vitest";
import { z } from "zod";
import { paramLines } from "./params.ts";

it("tells each param's type, whether it must be given, and what it is when it is not", () => {
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
  "makes nothing up for %j",
  (schema) => {
    expect(paramLines(schema).join()).toMatch(/^(?:a: any)?$/);
  },
);
