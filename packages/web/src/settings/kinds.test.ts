import { describe, expect, it } from "vitest";
import { CONNECTION_KIND, formatFile, POOL_KIND, parseFile, VARIABLE_KIND } from "./kinds.ts";

describe("a file of settings", () => {
  it.each([POOL_KIND, VARIABLE_KIND, CONNECTION_KIND])(
    "has a sample that can be read: $collection",
    (kind) => {
      const { entries, problems } = parseFile(kind, kind.example);
      expect([entries.length > 0, problems]).toEqual([true, []]);
      expect(entries[0]).toHaveProperty(kind.key);
    },
  );

  it("is read again as it was written", () => {
    const pools = [{ name: "gpu", slots: 2, description: null, include_deferred: true, running_slots: 1 }];
    expect(parseFile(POOL_KIND, formatFile(POOL_KIND, pools).text).entries).toEqual([
      { name: "gpu", slots: 2, include_deferred: true },
    ]);
    const variables = [
      { key: "region", value: "eu", description: "Where" },
      { key: "api_key", value: "***", description: null },
    ];
    const written = formatFile(VARIABLE_KIND, variables);
    expect([written.count, written.hidden]).toEqual([1, 1]);
    expect(parseFile(VARIABLE_KIND, written.text).entries).toEqual([variables[0]]);
  });

  it("names each entry that cannot be imported", () => {
    expect(parseFile(VARIABLE_KIND, '{"a": "***", "b": {"value": 1}}')).toEqual({
      entries: [{ key: "b", value: 1 }],
      problems: [expect.stringMatching(/^a: the value is masked/)],
    });
    expect(parseFile(CONNECTION_KIND, '{"w": "postgres://x"}').problems).toEqual([
      expect.stringMatching(/^w: it is a URI/),
    ]);
    expect(parseFile(POOL_KIND, '{"gpu": 2}').problems).toEqual(["gpu: it must be an object"]);
    expect(parseFile(POOL_KIND, "[]").problems).toEqual(["This is not a JSON object of pools"]);
    expect(parseFile(POOL_KIND, "{").problems).toEqual([expect.stringMatching(/^This is not JSON/)]);
  });

  it("has the extra of a connection as text, in the forms of Airflow", () => {
    const of = (extra: object) =>
      parseFile(CONNECTION_KIND, JSON.stringify({ w: { conn_type: "x", ...extra } }));
    expect(of({ extra: '{"a":1}' }).entries).toEqual([
      { connection_id: "w", conn_type: "x", extra: '{"a":1}' },
    ]);
    expect(of({ extra_dejson: { a: 1 } }).entries).toEqual([
      { connection_id: "w", conn_type: "x", extra: '{"a":1}' },
    ]);
    expect(of({ host: null, conn_id: "other" }).entries).toEqual([{ connection_id: "w", conn_type: "x" }]);
  });
});
