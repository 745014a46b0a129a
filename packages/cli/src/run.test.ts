import { spawnSync } from "node:child_process";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runCaptured } from "../test/support/captured-host.ts";

describe("usage", () => {
  it("lists every group without loading any", async () => {
    const { code, stdout } = await runCaptured([]);
    expect(code).toBe(0);
    for (const group of [
      "standalone",
      "dags",
      "runs",
      "tasks",
      "pools",
      "variables",
      "connections",
      "tokens",
      "db",
      "doctor",
    ]) {
      expect(stdout).toMatch(new RegExp(`^  ${group} `, "m"));
    }
  });

  it.each([
    [["nonsense"], "unknown command"],
    [["dags", "lits"], "Did you mean list?"],
    [["dags", "trigger"], "missing required argument 'dag'"],
    [["dags", "list", "-o", "xml"], "Allowed choices are table, json, yaml"],
    [["dags", "trigger", "x", "--logical-date", "soon"], "Give a date"],
    [["dags", "trigger", "x", "--conf", "[]"], "must be a JSON object"],
    [["runs", "list", "--state", "odd"], "Allowed choices are queued, running, success, failed"],
    [["pools", "set", "p", "many"], "whole number"],
    [["deliveries", "retry", "abc"], "whole number of at least 1"],
    [
      ["backfill", "create", "x", "--from", "2026-01-01", "--to", "2026-01-02", "--conf", "[]"],
      "JSON object",
    ],
    [["trigger", "etl"], "use `tradewind dags trigger`"],
    [["logs", "etl", "--follow"], "use `tradewind runs logs`"],
    [["db", "clean"], "--older-than"],
    [["standalone", "--port", "99999"], "whole number from 0 to 65535"],
    [["connections", "set", "x", "--uri", "pg://u:p@/db"], "--uri has no host"],
    [["connections", "set", "x", "--host", "a b"], "--host has a host with"],
    [["tokens", "delete", "first"], "whole number of at least 1"],
    [["signals", "listen", "*", "--from", "99999999999999999999"], "No signal has the version 9999999999"],
    [["tasks", "mark", "d", "r", "t", "running"], "Allowed choices are success, failed, skipped"],
  ])("reports a usage error for %j: %s", async (argv, message) => {
    const { code, stdout, stderr } = await runCaptured(argv);
    expect(stderr).toContain(message);
    expect(stderr.split("\n", 1)[0]).toMatch(/ \[TW_CLI_USAGE\]$/);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  it.each([
    [["dags", "lits", "--json"], "unknown command 'lits'"],
    [["-o", "json", "dags", "trigger"], "missing required argument 'dag'"],
    [["dags", "trigger", "x", "--conf", "[]", "--output=json"], "must be a JSON object"],
    [["runs", "--json"], "a command is missing"],
  ])("prints the usage error of %j as one JSON object: %s", async (argv, message) => {
    const { code, stdout, stderr } = await runCaptured(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.trimEnd()).not.toContain("\n");
    expect(JSON.parse(stderr)).toMatchObject({
      code: "TW_CLI_USAGE",
      message: expect.stringContaining(message),
      exit_code: 2,
    });
  });

  it("exits with 0 after --help", async () => {
    for (const argv of [["--help"], ["dags", "--help"], ["help", "dags"], ["dags", "trigger", "-h"]]) {
      const { code, stdout } = await runCaptured(argv);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Usage: tradewind/);
    }
  });

  it("reports a usage error with help for a group without a command", async () => {
    const { code, stderr } = await runCaptured(["runs"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Usage: tradewind runs");
  });
});

describe("output", () => {
  it("prints text, JSON or YAML, options before or after the command", async () => {
    expect((await runCaptured(["version"])).stdout).toMatch(/^tradewind \d+\.\d+\.\d+ /);
    for (const argv of [
      ["version", "--json"],
      ["-o", "json", "version"],
    ]) {
      expect(JSON.parse((await runCaptured(argv)).stdout)).toMatchObject({ node: process.version });
    }
    expect(parse((await runCaptured(["version", "-o", "yaml"])).stdout)).toMatchObject({
      node: process.version,
    });
  });
});

describe("without a server", () => {
  it("reports it with its exit code and without a stack", async () => {
    const { code, stdout, stderr } = await runCaptured(["dags", "list"]);
    expect({ code, stdout }).toEqual({ code: 6, stdout: "" });
    expect(stderr).toMatch(/^error: no server found.* \[TW_CLI_NO_SERVER\]\n/);
    expect(stderr).toContain("tradewind standalone");
    expect(stderr).not.toContain("    at ");
  });

  it("reports it as JSON with code and remedy", async () => {
    const { code, stdout, stderr } = await runCaptured(["dags", "list", "--json"]);
    expect({ code, stdout }).toEqual({ code: 6, stdout: "" });
    expect(JSON.parse(stderr)).toEqual({
      code: "TW_CLI_NO_SERVER",
      message: expect.stringMatching(/^no server found/),
      exit_code: 6,
      remedy: expect.stringContaining("tradewind standalone"),
    });
  });

  it("prints the stack with -v", async () => {
    expect((await runCaptured(["dags", "list", "-v"])).stderr).toContain("    at ");
    const { stderr } = await runCaptured(["dags", "list", "-v", "--json"]);
    expect(JSON.parse(stderr).stack[0]).toContain("    at ");
  });

  it("fails without asking if there is no terminal", async () => {
    const { code, stderr } = await runCaptured(["dags", "delete", "x", "--url", "http://127.0.0.1:1"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--yes");
  });
});

describe("confirmation", () => {
  it.each([
    ["Ctrl-C", "\u0003"],
    ["Ctrl-D", "\u0004"],
  ])("ends at %s without a change and with the exit code of an interruption", async (_, key) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    setTimeout(() => stdin.write(key), 50);
    const answer = await runCaptured(["runs", "delete", "etl", "r1"], {
      columns: 80,
      stdin,
      env: { TRADEWIND_URL: "http://127.0.0.1:9", TRADEWIND_TOKEN: "t" },
    });
    expect(answer).toEqual({ code: 130, stdout: "", stderr: "\ncancelled\n" });
  });
});

describe("bin/tradewind.mjs", () => {
  const bin = fileURLToPath(new URL("../bin/tradewind.mjs", import.meta.url));

  it("runs the sources of a checkout and passes on arguments and exit code", () => {
    const ran = spawnSync(process.execPath, [bin, "version", "--json"], { encoding: "utf8" });
    expect(JSON.parse(ran.stdout)).toMatchObject({ node: process.version });
    expect(spawnSync(process.execPath, [bin, "nonsense"]).status).toBe(2);
  });

  it("names the remedy on an old Node.js", () => {
    const code = `Object.defineProperty(process.versions, "node", { value: "20.11.0" }); await import(${JSON.stringify(bin)});`;
    const ran = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
    expect(ran.status).toBe(6);
    expect(ran.stderr).toContain("needs Node.js 22.19 or newer");
  });
});
