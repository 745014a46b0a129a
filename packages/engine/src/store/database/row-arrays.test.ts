import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { RowArrays } from "./row-arrays.ts";
import { statement } from "./statement.ts";

interface Row {
  readonly id: number;
  readonly name: string | null;
  readonly isDone: boolean | null;
  readonly dueAt: number | null;
  readonly note: string | null;
  readonly detail: unknown;
}

const ROWS = new RowArrays<Row>({
  id: ["bigint", ({ id }) => id],
  name: ["text", ({ name }) => name],
  is_done: ["boolean", ({ isDone }) => isDone],
  due_at: ["instant", ({ dueAt }) => dueAt],
  note: ["message", ({ note }) => note],
  detail: ["json", ({ detail }) => detail],
});
const ECHO = statement(
  "t_echo_row_arrays",
  `SELECT u.*, ${ROWS.count} AS count, ${ROWS.parameter(1)}::text AS more FROM ${ROWS.source} AS u`,
);

let server: TestDatabase;
beforeAll(async () => {
  server = await testDatabase({ empty: true });
});
afterAll(() => server.close());

const nullable = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null });
const text = fc.oneof(
  fc.constantFrom("", "null", '"', "\\", "{a,b}", "(a,b)", ",", "a\nb"),
  fc.string({ unit: "binary" }).map((s) => s.replaceAll(/[\0\ud800-\udfff]/g, "?")),
);
const row: fc.Arbitrary<Row> = fc.record({
  id: fc.maxSafeInteger(),
  name: nullable(text),
  isDone: nullable(fc.boolean()),
  dueAt: nullable(fc.integer({ min: 0, max: 4e12 })),
  note: nullable(text),
  detail: fc.constantFrom<unknown>(null, { a: [1, "x"] }, "text", 0),
});

describe("RowArrays", () => {
  it("passes rows under the names of their columns", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 10 }), async (rows) => {
        const expected = rows.map(({ detail, dueAt, id, isDone, name, note }) => ({
          id,
          name,
          is_done: isDone,
          due_at: dueAt === null ? null : new Date(dueAt),
          note,
          detail,
          count: rows.length,
          more: "more",
        }));
        expect(await server.db.rows(ECHO, [...ROWS.values(rows), "more"])).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });

  it("removes NUL characters from messages and stores undefined as NULL", async () => {
    const given = { id: 1, name: null, isDone: null, dueAt: null, note: "a\0b\0", detail: undefined };
    const [stored] = await server.db.rows(ECHO, [...ROWS.values([given]), ""]);
    expect(stored).toMatchObject({ note: "ab", detail: null });
  });
});
