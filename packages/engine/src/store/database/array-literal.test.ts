import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { encoded } from "./array-literal.ts";
import { statement } from "./statement.ts";

const ECHO = statement(
  "t_echo_arrays",
  "SELECT $1::text[] AS texts, $2::float8[] AS numbers, $3::boolean[] AS booleans",
);

let server: TestDatabase;
beforeAll(async () => {
  server = await testDatabase({ empty: true });
});
afterAll(() => server.close());

const awkward = fc.constantFrom(
  "",
  "null",
  "NULL",
  "Null",
  '"',
  "\\",
  "{a,b}",
  "(a,b)",
  " x ",
  ",",
  "\\N",
  "a\nb",
  "é😀",
  "a-b_1",
);
const text = fc.oneof(
  awkward,
  fc.string({ unit: "binary" }).map((s) => s.replaceAll(/[\0\ud800-\udfff]/g, "?")),
);
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
const nullable = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null });

test("sends every array unchanged, in a statement and in a pipeline", async () => {
  const optional = <T>(of: fc.Arbitrary<T>) => fc.array(nullable(of), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(
      optional(text),
      optional(number),
      optional(fc.boolean()),
      async (texts, numbers, booleans) => {
        const values = [texts, numbers, booleans];
        expect(values.map(encoded).every((value) => typeof value === "string")).toBe(true);
        const expected = [{ texts, numbers, booleans }];
        expect(await server.db.rows(ECHO, values)).toEqual(expected);
        expect((await server.db.pipeline([{ statement: ECHO, values }]))[0]).toEqual(expected);
      },
    ),
    { numRuns: 200 },
  );
});

test("leaves arrays of other values to the driver", () => {
  const dates = [new Date(0)];
  expect(encoded(dates)).toBe(dates);
  expect(encoded("{}")).toBe("{}");
});
