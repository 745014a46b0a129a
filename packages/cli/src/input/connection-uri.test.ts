import { expect, it } from "vitest";
import { parseConnectionUri } from "./connection-uri.ts";

it("takes a URI apart", () => {
  expect(parseConnectionUri("postgres://ann:s%40cret%2F@db.example:5433/sales?sslmode=require&x=1")).toEqual({
    conn_type: "postgres",
    login: "ann",
    password: "s@cret/",
    host: "db.example",
    port: 5433,
    schema: "sales",
    extra: '{"sslmode":"require","x":"1"}',
  });
});

it.each([
  ["http://example.org", { conn_type: "http", host: "example.org" }],
  ["redis://:pw@[::1]:6379", { conn_type: "redis", password: "pw", host: "::1", port: 6379 }],
  ["s3://", { conn_type: "s3" }],
])("leaves out what %s does not say", (uri, parts) => {
  expect(parseConnectionUri(uri)).toEqual(parts);
});

it.each(["no uri", "postgres:/x", "pg://h:99999", "pg://a:%zz@h"])(
  "refuses %s without repeating it",
  (uri) => {
    expect(() => parseConnectionUri(uri)).toThrowError(expect.objectContaining({ exit: 2 }));
    expect(() => parseConnectionUri("bad uri with secret")).not.toThrow(/secret/);
  },
);
