import { describe, expect, it } from "vitest";
import { readConfig, requireDatabaseUrl } from "./config.ts";

describe("readConfig", () => {
  it("has a default for everything but the database", () => {
    const config = readConfig({ env: {}, cwd: "/project" });
    expect(config).toEqual({
      home: "/project/.tradewind",
      dags: "/project/dags",
      host: "127.0.0.1",
      port: 8080,
      publicUrl: undefined,
      databaseUrl: undefined,
      databaseConnections: 10,
      executor: "local",
      executors: {},
      executionUrl: undefined,
      podTemplate: undefined,
      kubernetesNamespace: [],
      kubernetesDeletePods: "always",
      kubernetesPendingMs: 600_000,
      kubernetesCreateRate: 100,
      redisUrl: undefined,
      queueParallelism: 10_000,
      parallelism: expect.any(Number),
      streamingSlots: 0,
      taskEnv: [],
      stopGraceMs: 5_000,
      drainMs: undefined,
      maxMapLength: 100_000,
      outputStore: "file:",
      logStore: "file:",
      outputInlineLimit: 1_048_576,
      outputLimit: 268_435_456,
      triggererCapacity: 10_000,
      triggererMemoryMb: 2_048,
      triggererQueues: ["default"],
      signals: "postgres",
      signalsToken: undefined,
      signalsCa: undefined,
      signalsClientCert: undefined,
      signalsClientKey: undefined,
      signalsPort: undefined,
      signalsTlsCert: undefined,
      signalsTlsKey: undefined,
      signalsTlsCa: undefined,
      onFailure: [],
      logLevel: "info",
      logFormat: "pretty",
    });
    expect(config.parallelism).toBeGreaterThanOrEqual(4);
  });

  it("prefers flags to variables and variables to defaults; an empty variable is not set", () => {
    const env = {
      TRADEWIND_HOME: "/var/tw",
      TRADEWIND_DAGS: "/srv/dags",
      TRADEWIND_PORT: "9000",
      TRADEWIND_HOST: "",
      TRADEWIND_PUBLIC_URL: "https://flows.example.com/tw/",
      TRADEWIND_PARALLELISM: "0",
      TRADEWIND_DRAIN: "1.5m",
      TRADEWIND_TRIGGERER_QUEUES: "default, slow,default",
      TRADEWIND_LOG_LEVEL: "DEBUG",
      DATABASE_URL: "postgres://u:p@db/x",
    };
    const config = readConfig({ env, cwd: "/project", flags: { dags: "mine", port: 0 } });
    expect(config).toMatchObject({
      home: "/var/tw",
      dags: "/project/mine",
      port: 0,
      host: "127.0.0.1",
      parallelism: 0,
      drainMs: 90_000,
      triggererQueues: ["default", "slow"],
      logLevel: "debug",
      databaseUrl: "postgres://u:p@db/x",
      publicUrl: "https://flows.example.com/tw",
    });
  });

  it.each([
    ["file:", "file:"],
    ["file:/srv/./outputs/", "file:/srv/outputs"],
    ["file:///srv/outputs", "file:/srv/outputs"],
    ["s3://bucket", "s3://bucket"],
    ["s3://bucket/a/b/", "s3://bucket/a/b"],
  ])("accepts the store %s", (given, expected) => {
    const env = { TRADEWIND_LOG_STORE: given, TRADEWIND_OUTPUT_STORE: given };
    const { logStore, outputStore } = readConfig({ env, cwd: "/project" });
    expect([logStore, outputStore]).toEqual([expected, expected]);
  });

  it.each([
    [
      { env: { TRADEWIND_OUTPUT_STORE: "/srv" } },
      /^TRADEWIND_OUTPUT_STORE is "\/srv": .* file:\/folder or s3:/,
    ],
    [
      { env: { TRADEWIND_OUTPUT_STORE: "file:outputs" }, cwd: "/project" },
      /^TRADEWIND_OUTPUT_STORE is "file:outputs": .* whole path, such as file:\/project\/outputs\.$/,
    ],
    [{ env: { TRADEWIND_OUTPUT_STORE: "s3://" } }, /^TRADEWIND_OUTPUT_STORE/],
    [{ env: { TRADEWIND_LOG_STORE: "logs" } }, /^TRADEWIND_LOG_STORE is "logs": .* file:\/folder or s3:/],
    [{ env: { TRADEWIND_OUTPUT_LIMIT: "1 GB" } }, /^TRADEWIND_OUTPUT_LIMIT .* from 1024 to 500000000/],
    [{ env: { TRADEWIND_PORT: "eighty" } }, /^TRADEWIND_PORT is "eighty": .* from 0 to 65535/],
    [{ env: { TRADEWIND_PORT: "65536" } }, /^TRADEWIND_PORT/],
    [{ env: { TRADEWIND_PORT: "1e3" } }, /^TRADEWIND_PORT/],
    [{ env: {}, flags: { port: "-1" } }, /^--port is "-1"/],
    [{ env: { TRADEWIND_PARALLELISM: "2.5" } }, /^TRADEWIND_PARALLELISM/],
    [{ env: { TRADEWIND_DRAIN: "30" } }, /^TRADEWIND_DRAIN is "30": it must be a duration up to 24h/],
    [{ env: {}, flags: { drainMs: "25h" } }, /^--drain is "25h"/],
    [{ env: {}, flags: { triggererCapacity: 0 } }, /^--capacity is "0": .* from 1 to 1000000/],
    [{ env: {}, flags: { triggererQueues: "a,,b" } }, /^--queues is "a,,b": it must be names with commas/],
    [{ env: { TRADEWIND_HOST: "http://x/" } }, /^TRADEWIND_HOST is "http:\/\/x\/": it must be a host name/],
    [{ env: { TRADEWIND_SIGNALS: "grpc://host:8081." } }, /^TRADEWIND_SIGNALS must be .* grpc:\/\/host:port/],
    [{ env: { TRADEWIND_LOG_LEVEL: "loud" } }, /^TRADEWIND_LOG_LEVEL .* one of debug, info, warn, error/],
    [{ env: { DATABASE_URL: "mysql://u:hunter2@db/x" } }, /^DATABASE_URL starts with mysql:\/\/: it must be/],
    [{ env: { DATABASE_URL: "hunter2" } }, /^DATABASE_URL must be a PostgreSQL URL/],
    [{ env: {}, flags: { home: "" } }, /^--home must name a folder/],
  ])("names the source of an invalid value: %j", (sources, message) => {
    expect(() => readConfig(sources)).toThrow(message);
    expect(() => readConfig(sources)).not.toThrow(/hunter2/);
    expect(() => readConfig(sources)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  });

  it("reports what a service without a database needs", () => {
    expect(() => requireDatabaseUrl(readConfig({ env: {} }), "scheduler")).toThrow(
      /"tradewind scheduler".*DATABASE_URL/,
    );
  });
});
