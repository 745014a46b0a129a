import { describe, expect, it } from "vitest";
import { readConfig } from "./config.ts";
import { refusedNames, userEnvironment, withheldNames } from "./user-environment.ts";

const NEEDED = {
  PATH: "/bin",
  HOME: "/home/me",
  TMPDIR: "/tmp",
  NODE_ENV: "production",
  HTTP_PROXY: "http://proxy:1",
  https_proxy: "http://proxy:2",
  no_proxy: "localhost",
  NODE_EXTRA_CA_CERTS: "/ca.pem",
  SSL_CERT_FILE: "/certs.pem",
  SSL_CERT_DIR: "/certs",
  LANG: "de_DE.UTF-8",
  LC_TIME: "en_GB.UTF-8",
  LANGUAGE: "de",
  TZ: "Europe/Berlin",
  TRADEWIND_TASK_REGION: "eu",
};
const SECRETS = {
  DATABASE_URL: "postgres://secret",
  PGPASSWORD: "secret",
  REDIS_URL: "redis://secret",
  TRADEWIND_TOKEN: "secret",
  TRADEWIND_SECRET_KEY: "secret",
  TRADEWIND_SIGNALS_TOKEN: "secret",
};
const OTHERS = { AWS_REGION: "eu", AWS_SECRET_ACCESS_KEY: "x", HF_TOKEN: "y", NODE_OPTIONS: "--inspect" };
const SOURCE = { ...NEEDED, ...SECRETS, ...OTHERS, TRADEWIND_TASK_USER: "60802" };

describe("userEnvironment", () => {
  it("includes what programs need, proxies, certificates, locale and time zone by default", () => {
    expect(userEnvironment(SOURCE)).toEqual(NEEDED);
  });

  it("adds the variables of TRADEWIND_TASK_ENV, by name or by pattern", () => {
    const passed = (list: string) => {
      const all = userEnvironment({ ...SOURCE, TRADEWIND_TASK_ENV: list });
      return Object.keys(all).filter((name) => !(name in NEEDED));
    };
    expect(passed("HF_TOKEN")).toEqual(["HF_TOKEN"]);
    expect(passed(" AWS_* , HF_TOKEN,")).toEqual(["AWS_REGION", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"]);
    expect(passed("*_TOKEN")).toEqual(["HF_TOKEN"]);
    expect(passed("AWS_")).toEqual([]);
    expect(passed("hf_token")).toEqual([]);
    expect(passed("A.*")).toEqual([]);
  });

  it("never passes a secret or a setting of Tradewind, even if the list matches it", () => {
    for (const list of ["*", "TRADEWIND_*", "TRADEWIND_TASK_*", "D*,P*,R*", "DATABASE_URL,REDIS_URL"]) {
      const environment = userEnvironment({ ...SOURCE, TRADEWIND_TASK_ENV: list });
      expect(JSON.stringify(environment), list).not.toContain("secret");
      expect(environment, list).not.toHaveProperty("TRADEWIND_TASK_USER");
      expect(environment, list).not.toHaveProperty("TRADEWIND_TASK_ENV");
    }
    expect(userEnvironment({ database_url: "secret", TRADEWIND_TASK_ENV: "*" })).toEqual({});
  });
});

it("returns withheld variables that a pattern matches", () => {
  expect(refusedNames({ ...SOURCE, TRADEWIND_TASK_ENV: "*_URL,AWS_*" })).toEqual([
    "DATABASE_URL",
    "REDIS_URL",
  ]);
  expect(refusedNames({ ...SOURCE, TRADEWIND_TASK_ENV: "AWS_*" })).toEqual([]);
});

it("returns variables that are set and not passed on, except those that never are", () => {
  expect([...withheldNames({ ...SOURCE, TRADEWIND_TASK_ENV: "AWS_*" })]).toEqual([
    "HF_TOKEN",
    "NODE_OPTIONS",
  ]);
});

describe("TRADEWIND_TASK_ENV", () => {
  const read = (list: string) => readConfig({ env: { TRADEWIND_TASK_ENV: list } }).taskEnv;

  it("accepts names and patterns", () => {
    expect(read("AWS_*, HF_TOKEN")).toEqual(["AWS_*", "HF_TOKEN"]);
    expect(read("*,TRADEWIND_*")).toEqual(["*", "TRADEWIND_*"]);
  });

  it("is rejected if it names a secret or a setting of Tradewind", () => {
    for (const name of ["DATABASE_URL", "TRADEWIND_TOKEN", "REDIS_URL", "TRADEWIND_TASK_USER"])
      expect(() => read(`AWS_*,${name}`)).toThrow(`TRADEWIND_TASK_ENV names ${name}, which is never passed`);
  });

  it("is rejected if it contains an invalid name", () => {
    expect(() => read("AWS_*,HF-TOKEN")).toThrow(
      'TRADEWIND_TASK_ENV has "HF-TOKEN": give names with commas between them, such as AWS_*,HF_TOKEN.',
    );
  });
});
