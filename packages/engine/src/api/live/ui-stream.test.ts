import { beforeEach, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { LiveBrowser } from "../../../test/api/live-browser.ts";
import { type LiveServer, liveServer, send } from "../../../test/api/live-server.ts";
import { silentLogger } from "../../service/logger.ts";

let tw: Installation;
let server: LiveServer;

beforeEach(async () => {
  tw ??= await Installation.open();
  server = await liveServer(tw);
});

const setPool = (name: string, slots = 1) => send(server, "POST", "/pools", { name, slots });

function open(topics: readonly string[], last?: string): Promise<LiveBrowser> {
  return LiveBrowser.open(server, topics, last === undefined ? {} : { last });
}

/** Pools in the order of their messages. */
function pools(browser: LiveBrowser): string[] {
  return browser.of("settings").flatMap((message) => message.pools.map(({ name }) => name));
}

async function sees(browser: LiveBrowser, pool: string): Promise<void> {
  await browser.reach(() => pools(browser).includes(pool));
}

describe("a stream", () => {
  test("has the headers that proxies need, and one event before the first change", async () => {
    const browser = await open(["settings", "jobs"]);
    const { headers } = browser.response;
    expect(headers.get("content-type")).toBe("text/event-stream");
    expect(headers.get("x-accel-buffering")).toBe("no");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(browser.events).toMatchObject([{ event: "open", data: { topics: ["settings", "jobs"] } }]);
  });

  test("has its messages in the OpenAPI document, for generated types", async () => {
    const response = await fetch(`${server.url}/openapi.json`, { headers: server.headers });
    const { components } = (await response.json()) as { components: { schemas: Record<string, unknown> } };
    expect(Object.keys(components.schemas)).toEqual(
      expect.arrayContaining(["LiveMessage", "LiveOpen", "LiveResync", "LiveRun", "LiveTask"]),
    );
  });

  test("rejects an unknown topic, and names the known ones", async () => {
    for (const topics of ["nope", "runs,run:etl", "dag:", "run:a/b/c", "dag:a b"]) {
      const url = `${server.url}/ui/stream?topics=${encodeURIComponent(topics)}`;
      const response = await fetch(url, { headers: server.headers });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("dag:<dag_id>, run:<dag_id>/<run_id>");
    }
    const browser = await open([]);
    expect((await browser.change(["nope"])).status).toBe(400);
  });

  test("is refused without a token, and to a worker", async () => {
    expect((await fetch(`${server.url}/ui/stream`)).status).toBe(401);
    const made = await fetch(`${server.url}/api/v2/tokens`, {
      method: "POST",
      headers: { ...server.headers, "content-type": "application/json" },
      body: JSON.stringify({ name: "worker", role: "worker" }),
    });
    const { token } = (await made.json()) as { token: string };
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${server.url}/ui/stream?topics=runs`, { headers })).status).toBe(403);
  });

  test("ends with its session", async () => {
    const signedIn = await fetch(`${server.url}/ui/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token: tw.token }),
    });
    const cookie = signedIn.headers.get("set-cookie")!.split(";")[0]!;
    const browser = await LiveBrowser.open({ url: server.url, headers: { cookie } }, ["runs"]);
    const headers = { cookie, "x-tradewind-csrf": "1" };
    expect((await fetch(`${server.url}/ui/session`, { method: "DELETE", headers })).status).toBe(204);
    await browser.reach(() => browser.isEnded);
  });

  test("does not delay the end of the server", async () => {
    const browser = await open(["runs", "home"]);
    const began = performance.now();
    await server.close();
    expect(performance.now() - began).toBeLessThan(3_000);
    await browser.reach(() => browser.isEnded);
  });
});

describe("the topics of a stream", () => {
  test("change without a new connection", async () => {
    const browser = await open(["runs"]);
    expect(await (await browser.change(["settings"])).json()).toEqual({ topics: ["settings"] });
    await setPool("after");
    await sees(browser, "after");
    await browser.change(["signals"]);
    const other = await open(["settings"]);
    await setPool("unwatched");
    await sees(other, "unwatched");
    await browser.change(["settings"]);
    await setPool("again");
    await sees(browser, "again");
    expect(pools(browser)).toEqual(["after", "again"]);
    expect(browser.events.filter(({ event }) => event === "open")).toHaveLength(1);
  });

  test("are changed only by the caller who opened it", async () => {
    const browser = await open(["runs"]);
    const body = JSON.stringify({ topics: ["settings"] });
    const made = await fetch(`${server.url}/api/v2/tokens`, {
      method: "POST",
      headers: { ...server.headers, "content-type": "application/json" },
      body: JSON.stringify({ name: "other" }),
    });
    const { token } = (await made.json()) as { token: string };
    for (const [id, authorization] of [
      [browser.id, `Bearer ${token}`],
      ["unknown", server.headers.authorization!],
    ] as const) {
      const url = `${server.url}/ui/stream/${id}/topics`;
      const headers = { authorization, "content-type": "application/json" };
      expect((await fetch(url, { method: "PUT", headers, body })).status).toBe(404);
    }
  });

  test("send what changed right after the answer", async () => {
    const browser = await open([]);
    for (let n = 0; n < 10; n++) {
      await browser.change(n % 2 === 0 ? ["settings"] : ["settings", "runs"]);
      await setPool(`soon-${n}`);
    }
    await sees(browser, "soon-9");
    expect(pools(browser).toSorted()).toEqual(Array.from({ length: 10 }, (_, n) => `soon-${n}`));
  });
});

describe("a browser that reconnects", () => {
  test("receives what it has missed", async () => {
    const first = await open(["settings"]);
    await setPool("seen");
    await sees(first, "seen");
    first.close();
    await setPool("missed");
    const second = await open(["settings"], first.last);
    await sees(second, "missed");
    expect(pools(second)).toEqual(["missed"]);
    expect(second.resyncs).toEqual([]);
  });

  test("reads its data again if the id is of another process, or too old", async () => {
    const first = await open(["settings"]);
    const other = await liveServer(tw);
    const second = await LiveBrowser.open(other, ["settings", "runs"], { last: first.last });
    await second.reach(() => second.resyncs.length > 0);
    expect(second.resyncs).toEqual([["settings", "runs"]]);
    for (const last of ["", "nonsense", "000000000000-5", first.last.replace(/\d+$/, "999999")]) {
      const third = await open(["settings"], last);
      if (last !== "") await third.reach(() => third.resyncs.length > 0);
      expect(third.resyncs).toEqual(last === "" ? [] : [["settings"]]);
    }
  });

  test("reads only the data of topics again that were not watched meanwhile", async () => {
    const first = await open(["settings"]);
    await setPool("between");
    await sees(first, "between");
    const second = await open(["settings", "dags"], first.last);
    await second.reach(() => second.resyncs.length > 0);
    expect(second.resyncs).toEqual([["dags"]]);
  });

  test("reads its data again after the server has lost the database", async () => {
    const browser = await open(["settings", "runs"]);
    await tw.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    await browser.reach(() => browser.resyncs.length > 0);
    expect(browser.resyncs).toEqual([["settings", "runs"]]);
    await setPool("later");
    await sees(browser, "later");
    expect(browser.resyncs).toHaveLength(1);
    browser.close();
    const again = await open(["settings", "runs"], browser.events[0]!.id);
    await again.reach(() => again.resyncs.length > 0);
  });
});

test("reads its data again after changes could not be read", async () => {
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
  server = await liveServer(tw, { logger });
  const browser = await open(["settings"]);
  await tw.sql("ALTER TABLE pool RENAME TO pool_away");
  tw.wakeUps.send("pools");
  await expect.poll(() => warnings, { timeout: 10_000 }).toEqual(["could not read live changes"]);
  await tw.sql("ALTER TABLE pool_away RENAME TO pool");
  await browser.reach(() => browser.resyncs.length > 0);
  expect(browser.resyncs).toEqual([["settings"]]);
  await setPool("read");
  await sees(browser, "read");
});

test("many streams share one connection and one reader", async () => {
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }]));
  const listeners = async () =>
    (
      await tw.sql<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
      )
    ).length;
  // Of earlier servers, whose connections are about to close.
  await expect.poll(listeners, { timeout: 10_000 }).toBe(0);
  const browsers = await Promise.all(
    Array.from({ length: 30 }, (_, n) => open(["settings", "runs", `dag:etl`, `run:etl/${n}`])),
  );
  expect(await listeners()).toBe(1);
  await setPool("shared");
  await Promise.all(browsers.map((browser) => sees(browser, "shared")));
  expect(new Set(browsers.map((browser) => browser.last)).size).toBe(1);
});
