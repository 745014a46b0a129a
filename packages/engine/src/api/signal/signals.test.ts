import { beforeAll, describe, expect, it } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { Collector } from "../../signal/conformance/conformance.ts";
import { PostgresSignals } from "../../signal/postgres-signals.ts";

const PATIENCE = { timeout: 20_000 };

let tw: Installation;
let url: string;

beforeAll(async () => {
  tw = await Installation.open();
  url = await tw.app.listen({ host: "127.0.0.1", port: 0 });
});

const send = (body: unknown, headers: Record<string, string> = {}) =>
  tw.call("POST", "/signals", body, headers);

async function values(path: string): Promise<unknown[]> {
  const response = await tw.call("GET", path);
  expect(response.statusCode, response.body).toBe(200);
  return (response.json() as { signals: { value: unknown }[] }).signals.map(({ value }) => value);
}

describe("POST /signals", () => {
  it("stores one or many signals, and returns version and position", async () => {
    const one = await send({ key: "one", value: { a: [1] } });
    expect(one.statusCode).toBe(201);
    expect(one.json()).toEqual({
      signals: [
        {
          namespace: "default",
          key: "one",
          value: { a: [1] },
          version: expect.any(Number),
          sender: "admin",
          time: expect.stringMatching(/^\d{4}-.*Z$/),
          position: expect.stringMatching(/^\d+-\d+$/),
          is_duplicate: false,
        },
      ],
    });
    const many = await send({
      signals: [{ key: "two", namespace: "team", sender: "job" }, { key: "three" }],
    });
    expect(many.json().signals).toMatchObject([
      { key: "two", namespace: "team", sender: "job", value: null },
      { key: "three", namespace: "default" },
    ]);
  });

  it("stores a repeated signal once, by client and sequence or by Idempotency-Key", async () => {
    const numbered = { key: "numbered", value: 1, client: "c", sequence: 7 };
    const first = (await send(numbered)).json().signals[0];
    const second = (await send({ ...numbered, value: 2 })).json().signals[0];
    expect(second).toMatchObject({ version: first.version, is_duplicate: true });
    const reused = await send({ ...numbered, key: "other" });
    expect([reused.statusCode, reused.json().code]).toEqual([409, "SIGNAL_SEQUENCE_REUSED"]);

    const key = { "idempotency-key": "send-1" };
    const once = await send({ signals: [{ key: "keyed" }, { key: "keyed" }] }, key);
    const again = await send({ signals: [{ key: "keyed" }, { key: "keyed" }] }, key);
    expect(again.json()).toEqual(once.json());
    expect(again.headers["idempotency-replayed"]).toBe("true");
    expect((await send({ key: "keyed" }, key)).statusCode).toBe(422);
    expect(await values("/signals?key=keyed")).toHaveLength(2);
  });

  it("rejects invalid signals and reserved namespaces", async () => {
    const refused: [unknown, string][] = [
      [{ key: "" }, "SIGNAL_INVALID"],
      [{ key: "a*" }, "SIGNAL_INVALID"],
      [{ key: "k", namespace: "task" }, "SIGNAL_INVALID"],
      [{ key: "k", sender: "task:dag/run/task" }, "SIGNAL_INVALID"],
      [{ key: "k", client: "c" }, "SIGNAL_INVALID"],
      [{ value: 1 }, "VALIDATION"],
      [{ key: "k", extra: 1 }, "VALIDATION"],
      [{ signals: [] }, "VALIDATION"],
      [{ signals: [{ key: "good" }, { key: "b*d" }] }, "SIGNAL_INVALID"],
    ];
    for (const [body, code] of refused) {
      const response = await send(body);
      expect([response.statusCode, response.json().code], JSON.stringify(body)).toEqual([422, code]);
    }
    expect(await values("/signals?key=good")).toEqual([]);
    // The error is about the closer of the two possible forms.
    expect((await send({ value: 1 })).json().detail).toMatchObject([
      { loc: ["body", "key"], msg: "Field required" },
    ]);
  });
});

describe("GET /signals", () => {
  it("filters and pages signals", async () => {
    for (const n of [1, 2, 3]) await send({ key: `list.${n}`, value: n, sender: n === 2 ? "bob" : "ada" });
    expect(await values("/signals?key=list.*")).toEqual([1, 2, 3]);
    expect(await values("/signals?key=list.1&key=list.3")).toEqual([1, 3]);
    expect(await values("/signals?key=list.*&sender=bob")).toEqual([2]);
    expect(await values("/signals?namespace=team&key=list.*")).toEqual([]);
    expect(await values("/signals?key=list.*&time_lt=2020-01-01")).toEqual([]);
    const page = (await tw.call("GET", "/signals?key=list.*&order_by=-version&limit=2")).json();
    expect(page.signals.map(({ value }: { value: number }) => value)).toEqual([3, 2]);
    const next = `/signals?key=list.*&order_by=-version&limit=2&cursor=${page.next_cursor}`;
    expect((await tw.call("GET", next)).json()).toMatchObject({ signals: [{ value: 1 }], next_cursor: null });
    const { version } = page.signals[1];
    expect(await values(`/signals?key=list.*&version_gte=${version}`)).toEqual([2, 3]);
  });
});

describe("GET /signals/listen", () => {
  it("waits for the next signal, and returns the position to resume from", async () => {
    const { position } = (await tw.call("GET", "/signals/listen?key=poll&timeout=0")).json();
    const waiting = tw.call("GET", `/signals/listen?key=poll&position=${position}&timeout=20`);
    const sql = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN%'";
    await expect.poll(async () => (await tw.sql(sql)).length, PATIENCE).toBeGreaterThan(0);
    await send({ key: "elsewhere" });
    await send({ key: "poll", value: 1 });
    const first = (await waiting).json();
    expect(first.signals).toMatchObject([{ key: "poll", value: 1 }]);
    await send({
      signals: [
        { key: "poll", value: 2 },
        { key: "poll", value: 3 },
      ],
    });
    const listen = `/signals/listen?key=poll&position=${first.position}`;
    const second = (await tw.call("GET", `${listen}&limit=1`)).json();
    expect(second.signals).toMatchObject([{ value: 2 }]);
    expect(await values(`${listen}&limit=10`)).toEqual([2, 3]);
    expect(await values("/signals/listen?key=poll&from=start")).toEqual([1, 2, 3]);
    const empty = await tw.call("GET", "/signals/listen?key=poll&timeout=0.05");
    expect(empty.json()).toEqual({ signals: [], position: expect.stringMatching(/^\d+-\d+$/) });
  });

  it("rejects an invalid position and two start points", async () => {
    for (const query of ["position=x", "from=start&after_version=1", "since=yesterday", "timeout=-1"])
      expect((await tw.call("GET", `/signals/listen?${query}`)).statusCode, query).toBe(422);
  });

  it("streams events, and resumes after Last-Event-ID", async () => {
    const events = async (headers: Record<string, string>, count: number, begun?: () => Promise<unknown>) => {
      const stop = new AbortController();
      const response = await fetch(`${url}/api/v2/signals/listen?key=live`, {
        headers: { authorization: `Bearer ${tw.token}`, accept: "text/event-stream", ...headers },
        signal: stop.signal,
      });
      expect(response.headers.get("content-type")).toContain("text/event-stream");
      const found: { id: string; value: unknown }[] = [];
      let text = "";
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        if (text === "") await begun?.();
        text += piece;
        const blocks = text.split("\n\n").filter((block) => block.includes("event: signal"));
        found.splice(0);
        for (const block of blocks) {
          const id = /^id: (.*)$/m.exec(block)?.[1] ?? "";
          const data = /^data: (.*)$/m.exec(block)?.[1];
          if (data) found.push({ id, value: (JSON.parse(data) as { value: unknown }).value });
        }
        if (found.length >= count) break;
      }
      stop.abort();
      return found;
    };
    const first = await events({}, 2, () =>
      send({
        signals: [
          { key: "live", value: 1 },
          { key: "live", value: 2 },
        ],
      }),
    );
    expect(first.map(({ value }) => value)).toEqual([1, 2]);
    await send({ key: "live", value: 3 });
    const resumed = await events({ "last-event-id": first[0]!.id }, 2);
    expect(resumed.map(({ value }) => value)).toEqual([2, 3]);
  });

  it("lets the server close with a waiting client", async () => {
    const other = await Installation.open();
    const address = await other.app.listen({ host: "127.0.0.1", port: 0 });
    const poll = fetch(`${address}/api/v2/signals/listen?timeout=30`, {
      headers: { authorization: `Bearer ${other.token}` },
    });
    await expect
      .poll(
        async () =>
          (
            await other.sql(
              "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN%'",
            )
          ).length,
        PATIENCE,
      )
      .toBeGreaterThan(0);
    const began = performance.now();
    await other.app.close();
    expect((await poll).status).toBe(200);
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});

describe("listeners and dead letters", () => {
  it("are shown, retried and deleted with audit records", async () => {
    const service = new PostgresSignals({ database: tw.database, wakeUps: tw.wakeUps });
    let isCured = false;
    const collector = new Collector(async () => {
      if (!isCured) throw new Error("no");
    });
    const listening = await service.listen("sink", { key: "mail" }, collector, {
      attempts: 1,
      backoffMs: 10,
      leaseMs: 600,
    });
    await send({
      signals: [
        { key: "mail", value: "a" },
        { key: "mail", value: "b" },
      ],
    });
    await expect
      .poll(
        async () => (await tw.call("GET", "/signals/deadLetters?listener=sink")).json().total_entries,
        PATIENCE,
      )
      .toBe(2);
    const letters = (await tw.call("GET", "/signals/deadLetters")).json().dead_letters;
    expect(letters).toMatchObject([
      { listener: "sink", error: "no", attempts: 1, is_retried: false, signal: { key: "mail", value: "a" } },
      { signal: { value: "b" } },
    ]);
    const { listeners } = (await tw.call("GET", "/signals/listeners")).json();
    expect(listeners).toMatchObject([
      { name: "sink", filter: { keys: ["mail"] }, is_active: true, dead_letters: 2 },
    ]);
    expect((await tw.call("DELETE", "/signals/listeners/sink")).statusCode).toBe(409);

    isCured = true;
    const retried = await tw.call("POST", `/signals/deadLetters/${letters[0].id}/retry`);
    expect([retried.statusCode, retried.json().is_retried]).toEqual([202, true]);
    await collector.reach(1);
    expect(collector.values).toEqual(["a"]);
    expect((await tw.call("DELETE", `/signals/deadLetters/${letters[1].id}`)).statusCode).toBe(204);
    expect((await tw.call("DELETE", `/signals/deadLetters/${letters[1].id}`)).statusCode).toBe(404);
    expect((await tw.call("POST", `/signals/deadLetters/${letters[1].id}/retry`)).statusCode).toBe(404);

    await listening.stop();
    await service.close();
    expect((await tw.call("DELETE", "/signals/listeners/sink")).statusCode).toBe(204);
    expect((await tw.call("DELETE", "/signals/listeners/sink")).statusCode).toBe(404);
    const deeds = await tw.sql<{ action: string }>("SELECT action FROM audit_event ORDER BY id");
    expect(deeds.map(({ action }) => action)).toEqual([
      "retry_signal_dead_letter",
      "delete_signal_dead_letter",
      "delete_signal_listener",
    ]);
  });

  it("are claimed by one holder at a time", async () => {
    const claim = (holder: string) =>
      tw.call("POST", "/signals/listeners/remote/claim", {
        holder,
        lease_ms: 60_000,
        filter: { key: ["x"] },
      });
    expect((await claim("one")).json()).toMatchObject({ claimed: true, retries: [], place: { since: null } });
    expect((await claim("two")).json()).toMatchObject({ claimed: false, place: null });
    const commit = (holder: string) =>
      tw.call("POST", "/signals/listeners/remote/commit", { holder, position: "5-5", processed: 2 });
    expect((await commit("one")).json()).toEqual({ has_redeliveries: false });
    const lost = await commit("two");
    expect([lost.statusCode, lost.json().code]).toEqual([409, "SIGNAL_LISTENER_LOST"]);
    await tw.call("POST", "/signals/listeners/remote/release", { holder: "one" });
    expect((await claim("two")).json()).toMatchObject({ claimed: true, place: { position: "5-5" } });
  });
});

it("requires a token on all routes", async () => {
  for (const [method, path] of [
    ["POST", "/signals"],
    ["GET", "/signals"],
    ["GET", "/signals/listen"],
    ["GET", "/signals/listeners"],
    ["POST", "/signals/listeners/x/claim"],
    ["DELETE", "/signals/deadLetters/1"],
  ] as const) {
    const response = await tw.app.inject({ method, url: `/api/v2${path}` });
    expect([path, response.statusCode]).toEqual([path, 401]);
  }
});
