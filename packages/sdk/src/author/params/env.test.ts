import { expect, it } from "vitest";
import { attempt, RecordingHost } from "../../../test/attempt-call.ts";
import { connection, dag, type Env, variable } from "../../index.ts";
import { PROGRAM } from "../../runtime/program.ts";

const of = (env: unknown) => () => dag("x", { env: env as Env }, (d) => void d.task("t", () => 1));
const ofTask = (env: unknown) => () => dag("x", (d) => void d.task("t", { env: env as Env }, () => 1));

it.each([
  [{ "MY-KEY": "x" }, 'dag "x": env: "MY-KEY" is not a valid name of an environment variable'],
  [
    { PORT: 5432 },
    'dag "x": env.PORT must be a text, variable("key") or a field like connection("id").host, got 5432',
  ],
  [{ MODE: undefined }, /env\.MODE must be a text, .* got undefined/],
  [{ MODE: "a\0b" }, /env\.MODE must be a text, .* got a text with a NUL character/],
  [
    { HOST: connection("db") },
    /env\.HOST must be a text, .* a field like connection\("id"\)\.host, got an object/,
  ],
  [["MODE"], 'dag "x": env must be an object of environment variables, got an array'],
])("rejects %j when the DAG is defined", (env, message) => {
  expect(of(env)).toThrow(message);
  expect(of(env)).toThrow(expect.objectContaining({ code: "TW_BAD_OPTION" }));
});

it("names the task whose env is wrong", () => {
  expect(ofTask({ PORT: 5432 })).toThrow('dag "x", task "t": env.PORT must be a text');
});

it("rejects a reference inside a text and a reference without a name", () => {
  const db = connection("db");
  expect(() => `postgres://${db.host}/x`).toThrow(
    'connection("db").host is read when a task starts; it cannot be a part of a text',
  );
  expect(() => `${variable("key")}`).toThrow('variable("key") is read');
  expect(() => variable("")).toThrow("variable() takes a non-empty text");
  expect(() => connection(7 as never)).toThrow("connection() takes a non-empty text, got 7");
  expect(() => db.extra("")).toThrow('connection("db").extra() takes a non-empty text');
});

it("is not part of the manifest", () => {
  const env = { MODE: "batch", KEY: variable("api_key") };
  expect(of(env)()[PROGRAM].describe()).toEqual(of(undefined)()[PROGRAM].describe());
  expect(ofTask(env)()[PROGRAM].describe()).toEqual(ofTask(undefined)()[PROGRAM].describe());
});

it("reads a connection once and passes the name for which a variable is read", async () => {
  class CountingHost extends RecordingHost {
    readonly asked: string[] = [];
    values: Readonly<Record<string, string>> = {};
    override async variable(key: string, name?: string) {
      this.asked.push(`variable ${key} for ${name}`);
      return `value of ${key}`;
    }
    override async connection(id: string) {
      this.asked.push(`connection ${id}`);
      const facts = { id, type: "postgres", host: "h", port: 5, login: null, password: null, schema: null };
      return { ...facts, extra: { ssl: true } };
    }
    environment(values: Readonly<Record<string, string>>) {
      this.values = values;
    }
  }
  const host = new CountingHost();
  const db = connection("db");
  const env = { HOST: db.host, PORT: db.port, SSL: db.extra("ssl"), KEY: variable("api_key") };
  expect(await attempt(of(env)(), "t", { host })).toMatchObject({ kind: "success" });
  expect(host.asked.sort()).toEqual(["connection db", "variable api_key for KEY"]);
  expect(host.values).toEqual({ HOST: "h", PORT: "5", SSL: "true", KEY: "value of api_key" });
});

it("fails in an engine without support for env", async () => {
  expect(await attempt(of({ MODE: "batch" })(), "t", { host: new RecordingHost() })).toMatchObject({
    kind: "failed",
    error: { message: "this engine is too old for env; upgrade it" },
  });
});
