import { expect, it } from "vitest";
import { parseConnectionUri } from "./connection-uri.ts";

it("splits a URI into its parts", () => {
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
  ["sqlite:///var/data.db", { conn_type: "sqlite", schema: "var/data.db" }],
  [
    "postgres://%2Frun%2Fpostgresql/sales",
    { conn_type: "postgres", host: "/run/postgresql", schema: "sales" },
  ],
])("leaves out parts missing in %s", (uri, parts) => {
  expect(parseConnectionUri(uri)).toEqual(parts);
});

it.each([
  ["postgres://ann:s3cret@/sales", "has no host"],
  ["postgres://:5432/sales", "has no host"],
  ["postgres://db example:5432/sales", 'a host with " "'],
  ["postgres://db%20example/sales", 'a host with " "'],
  ["postgres://ann:s3cret@%0Adb/sales", 'a host with "\\n"'],
  ["http://<host>/", 'a host with "<"'],
])("rejects the host of %s: %s", (uri, message) => {
  expect(() => parseConnectionUri(uri)).toThrowError(
    expect.objectContaining({ exit: 2, message: expect.stringContaining(message) }),
  );
  expect(() => parseConnectionUri(uri)).not.toThrow(/s3cret/);
});

it.each(["no uri", "postgres:/x", "pg://h:99999", "pg://a:%zz@h"])(
  "rejects %s without repeating it",
  (uri) => {
    expect(() => parseConnectionUri(uri)).toThrowError(expect.objectContaining({ exit: 2 }));
    expect(() => parseConnectionUri("bad uri with secret")).not.toThrow(/secret/);
  },
);
