/** The requests of the REST guide, in order, against a real server with the DAGs of `examples/`. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, ROOT } from "./guide.ts";
import { commandLines, shellWords } from "./shell.ts";

const lines = blocksOf("docs/guides/rest-api.md")
  .filter(({ language }) => language === "sh")
  .flatMap(({ text }) => commandLines(text));
const requests = lines.filter((line) => line.startsWith("curl "));

let home: string;
let server: ChildProcess;
let variables: ReadonlyMap<string, string>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "tradewind-docs-"));
  const main = join(ROOT, "packages/cli/src/main.ts");
  const args = [
    "--home",
    home,
    "standalone",
    "--dags",
    join(ROOT, "examples"),
    "--port",
    "0",
    "--parallelism",
    "2",
  ];
  server = spawn(process.execPath, ["--conditions=source", main, ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  server.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  for (const deadline = Date.now() + 220_000; !/✓ etl/.test(said); await sleep(20)) {
    if (server.exitCode !== null || Date.now() > deadline)
      throw new Error(`standalone did not run etl:\n${said}`);
  }
  const token = (await readFile(join(home, "token"), "utf8")).trim();
  const { url } = JSON.parse(await readFile(join(home, "standalone.json"), "utf8")) as { url: string };
  variables = assigned(new Map([["URL", url]]), token);
}, 240_000);

afterAll(async () => {
  if (server.exitCode === null) {
    const ended = once(server, "exit");
    server.kill("SIGTERM");
    await ended;
  }
  await rm(home, { recursive: true, force: true });
});

/** The guide's own assignments, with the address and token of this server. */
function assigned(known: Map<string, string>, token: string): Map<string, string> {
  known.set("TOKEN", token);
  for (const line of lines) {
    const [, name, rest] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name && !known.has(name)) known.set(name, shellWords(rest ?? "", known).join(" "));
  }
  return known;
}

function send(line: string): Promise<Response> {
  const words = shellWords(line, variables).slice(1);
  const headers = new Headers();
  let url = "";
  let method = "GET";
  let body: string | undefined;
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === "-s") continue;
    if (word === "-X") method = words.shift() ?? "";
    else if (word === "-d") body = words.shift();
    else if (word === "-H") {
      const [name = "", ...value] = (words.shift() ?? "").split(": ");
      headers.set(name, value.join(": "));
    } else if (word.startsWith("http")) url = word;
    else throw new Error(`the test does not support ${word} of ${line}`);
  }
  return fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
}

describe("the REST guide", () => {
  it("has requests", () => expect(requests.length).toBeGreaterThan(20));

  it("makes requests that succeed", async () => {
    const answers: string[] = [];
    for (const line of requests) {
      const answer = await send(line);
      const text = await answer.text();
      answers.push(text);
      expect(answer.ok, `${line}\n${text}`).toBe(true);
    }
    const log = answers.find((_, at) => requests[at]?.endsWith("/extract/logs/1"));
    expect(log).toContain("the source does not answer");
    const output = answers.find((_, at) => requests[at]?.endsWith("/xcomEntries/return_value"));
    expect(JSON.parse(output ?? "{}")).toMatchObject({ value: 99_000 });
    const ended = answers.filter((_, at) => requests[at]?.includes("/wait?"));
    expect(ended.map((text) => text.trim().split("\n").at(-1))).toEqual([
      expect.stringContaining('"state":"success"'),
      expect.stringContaining('"state":"success"'),
    ]);
  });

  it("describes repeated keys, wrong values and missing tokens correctly", async () => {
    const create = requests.find((line) => line.includes("Idempotency-Key")) ?? "";
    expect((await send(create)).headers.get("idempotency-replayed")).toBe("true");
    const wrong = create.replace("monday-1", "monday-2").replace('"orders":2000', '"orders":-1');
    const refusal = (await (await send(wrong)).json()) as object;
    const [shown] = blocksOf("docs/guides/rest-api.md").filter(({ language }) => language === "json");
    expect(refusal).toEqual({ ...(JSON.parse(shown?.text ?? "") as object), request_id: expect.any(String) });
    const stranger = await fetch(`${variables.get("URL")}/api/v2/dags`);
    expect([stranger.status, ((await stranger.json()) as { code: string }).code]).toEqual([
      401,
      "UNAUTHENTICATED",
    ]);
  });
});
