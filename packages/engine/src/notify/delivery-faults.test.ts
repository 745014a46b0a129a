import { createHmac } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ComponentProcess, type Place } from "../../test/fault/component-process.ts";
import { NoticeFixture, PostReceiver } from "../../test/support/notice-fixture.ts";
import type { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { SmtpTestServer } from "../../test/support/smtp-server.ts";
import { DELIVERY_ATTEMPTS } from "../model/index.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { deadlinesOfVersion, judgeDeadlines, keepDeadlines } from "../store/notify/deadlines.ts";
import { reviveDeliveries } from "../store/notify/deliveries.ts";

class NoticeProcess extends ComponentProcess {
  constructor(place: Place, attemptMs: number, leaseMs: number) {
    super(place, "notice-program.ts", { FAULT_TIMES: `${attemptMs},${leaseMs}` });
  }
}

describe("deliveries of missed deadlines", () => {
  let rig: SchedulerRig;
  let desk: NoticeFixture;
  let receiver: PostReceiver;
  const smtp = new SmtpTestServer();

  beforeAll(async () => {
    ({ desk, receiver, rig } = await NoticeFixture.open());
    await smtp.open();
    const address = JSON.stringify(receiver.url);
    await rig.publish({
      "told.ts": `
        import { dag, deadline, email, sendSignal, signal, webhook } from "tradewind";
        const late = (then) => ({ deadline: deadline({ after: "queued", within: "1ms", then }) });
        const only = (d) => { d.task("only", () => 1); };
        export const posted = dag("posted", late([webhook(${address})]), only);
        export const connected = dag("connected", late([webhook("pager")]), only);
        export const mailed = dag("mailed", late([email({ to: "ops@example.com", connection: "mail" })]), only);
        export const all = dag("all", late([webhook(${address}), webhook(${address}), sendSignal(signal("late"))]), only);
      `,
    });
    // No scheduler: the runs stay queued, and their deadlines are missed.
    await desk.connection("mail", {
      connType: "smtp",
      host: "127.0.0.1",
      port: smtp.port,
      extra: JSON.stringify({ from: "tradewind@example.com", tls: "none" }),
    });
    await desk.connection("pager", {
      host: `http://127.0.0.1:${receiver.port}`,
      password: "token",
      extra: JSON.stringify({ path: "/late?x=1", secret: "s3cret", headers: { "X-Team": "data" } }),
    });
  });
  beforeEach(() => {
    receiver.received.length = 0;
    receiver.status = 204;
  });
  afterAll(async () => {
    await receiver.close();
    await smtp.close();
  });

  /** Like a host that dies right after. */
  async function miss(): Promise<void> {
    await keepDeadlines(rig.db, deadlinesOfVersion, 1_000);
    await rig.until(async () => (await judgeDeadlines(rig.db, 1_000)).missed > 0, "the miss");
  }

  it("use the settings of a connection: its address, its token, its headers and a signature", async () => {
    const id = await rig.trigger("connected");
    await desk.host();
    await desk.settled(id);
    const [post] = receiver.received;
    expect(post?.headers).toMatchObject({
      authorization: "Bearer token",
      "x-team": "data",
      "tradewind-signature": `sha256=${createHmac("sha256", "s3cret")
        .update(post?.text ?? "")
        .digest("hex")}`,
      "idempotency-key": expect.stringMatching(new RegExp(`^${(await desk.deliveries(id))[0]?.id}-\\d+$`)),
    });
  });

  it("are made by another host if one died between the miss and the delivery", async () => {
    const id = await rig.trigger("all");
    await miss();
    expect((await desk.deliveries(id)).map(({ state }) => state)).toEqual(["pending", "pending", "pending"]);
    await desk.host();
    expect((await desk.settled(id)).map(({ attempts, state }) => [state, attempts])).toEqual([
      ["done", 1],
      ["done", 1],
      ["done", 1],
    ]);
    expect(receiver.received).toHaveLength(2);
  });

  it("are made again if a process is killed during them", async () => {
    // It receives the post, and does not answer.
    const mute = await new PostReceiver().open();
    mute.isMute = true;
    onTestFinished(() => mute.close());
    const id = await rig.trigger("posted");
    await keepDeadlines(rig.db, deadlinesOfVersion, 1_000);
    await rig.db.rows(adhoc("UPDATE deadline SET actions = $2 WHERE dag_run_id = $1"), [
      id,
      JSON.stringify([{ kind: "webhook", to: mute.url }]),
    ]);
    const place = { home: `${rig.root}/host`, databaseUrl: rig.url, ledger: `${rig.root}/ledger` };
    const first = new NoticeProcess(place, 60_000, 1_500);
    onTestFinished(() => first.discard());
    await first.ready;
    await rig.until(async () => mute.received.length === 1, "the first attempt");
    await first.kill();
    expect(await desk.deliveries(id)).toMatchObject([{ state: "pending", attempts: 1 }]);
    mute.isMute = false;
    await desk.host();
    expect(await desk.settled(id)).toMatchObject([{ state: "done", attempts: 2 }]);
    expect(mute.received).toHaveLength(2);
    const [one, two] = mute.received.map(({ headers }) => headers["idempotency-key"]);
    expect(one).toBe(two);
  });

  it("are made once each by any number of hosts at once", async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, () => rig.trigger("posted")));
    for (let host = 0; host < 3; host++) {
      const database = Database.connect(rig.url, { max: 3 });
      onTestFinished(() => database.close());
      await desk.host({ database });
    }
    for (const id of ids) await desk.settled(id);
    const rows = (await Promise.all(ids.map((id) => desk.deliveries(id)))).flat();
    expect(rows).toHaveLength(30);
    expect(rows.every(({ attempts, state }) => state === "done" && attempts === 1)).toBe(true);
    expect(receiver.received).toHaveLength(30);
    const told = await rig.db.rows(
      adhoc(
        "SELECT key FROM signal WHERE namespace = 'deadline' AND key LIKE 'posted/%' GROUP BY key HAVING count(*) > 1",
      ),
    );
    expect(told).toEqual([]);
  });

  it("survive hosts that are killed repeatedly: each miss is recorded once, and delivered at least once", async () => {
    const place = (name: string) => ({
      home: `${rig.root}/${name}`,
      databaseUrl: rig.url,
      ledger: `${rig.root}/ledger`,
    });
    const ids: number[] = [];
    const hosts: NoticeProcess[] = [];
    onTestFinished(async () => {
      await Promise.all(hosts.map((host) => host.discard()));
    });
    for (let round = 0; round < 6; round++) {
      // Every other round the receiver rejects, or does not answer.
      receiver.status = round % 2 === 0 ? 500 : 204;
      receiver.isMute = round % 3 === 2;
      const host = new NoticeProcess(place(`storm${round}`), 400, 1_000);
      hosts.push(host);
      for (let each = 0; each < 10; each++) ids.push(await rig.trigger("posted"));
      await host.ready;
      const known = ids.length;
      await rig.until(async () => {
        const rows = await Promise.all(ids.map((id) => desk.states(id)));
        return rows.filter((states) => states["#0"] === "missed").length > known - 5;
      }, "misses");
      // In the middle of its work: some are recorded, some delivered, some neither.
      await host.kill();
    }
    receiver.status = 204;
    receiver.isMute = false;
    await desk.host({ times: { attemptMs: 5_000, leaseMs: 10_000 } });
    await rig.until(
      async () => {
        await rig.db.rows(
          adhoc("UPDATE delivery SET next_try_at = now() WHERE state = 'pending' AND error IS NOT NULL"),
        );
        const rows = (await Promise.all(ids.map((id) => desk.deliveries(id)))).flat();
        return rows.length === ids.length && rows.every(({ state }) => state === "done");
      },
      "all deliveries",
      60_000,
    );
    const deliveries = (await Promise.all(ids.map((id) => desk.deliveries(id)))).flat();
    const taken = receiver.received.filter(({ status }) => status === 204);
    const heard = new Set(
      taken.map(({ headers }) => Number.parseInt(String(headers["idempotency-key"]), 10)),
    );
    expect(deliveries.filter(({ id }) => !heard.has(id))).toEqual([]);
    const keys = await rig.db.rows<{ n: number }>(
      adhoc(`SELECT count(*) AS n FROM signal s JOIN dag_run r ON s.key = r.dag_id || '/' || r.run_id
             WHERE s.namespace = 'deadline' AND r.id = ANY($1) GROUP BY r.id`),
      [ids],
    );
    expect(keys.map(({ n }) => n)).toEqual(ids.map(() => 1));
  }, 120_000);

  it("wait for a receiver that is down, and reach it when it is up", async () => {
    await receiver.close();
    await smtp.close();
    const ids = [await rig.trigger("posted"), await rig.trigger("mailed")];
    await desk.host();
    const failed = async () => (await Promise.all(ids.map((id) => desk.deliveries(id)))).flat();
    await rig.until(
      async () => (await failed()).filter(({ error }) => error !== null).length === 2,
      "failures",
    );
    const rows = await failed();
    expect(rows.map(({ state }) => state)).toEqual(["pending", "pending"]);
    expect(rows.map(({ error }) => error)).toEqual([
      expect.stringContaining("ECONNREFUSED"),
      expect.stringContaining(`The SMTP server 127.0.0.1:${smtp.port} did not take the message`),
    ]);
    await receiver.open();
    await smtp.open();
    receiver.status = 503;
    await desk.hurry();
    await rig.until(
      async () => (await failed())[0]?.attempts === 2 && receiver.received.length > 0,
      "the answer",
    );
    await rig.until(async () => /answered 503/.test((await failed())[0]?.error ?? ""), "its error");
    receiver.status = 200;
    await desk.hurry();
    for (const id of ids) await desk.settled(id);
    expect((await failed()).every(({ error, state }) => state === "done" && error === null)).toBe(true);
    expect(smtp.mails).toHaveLength(1);
    expect(smtp.mails[0]).toMatchObject({ from: "tradewind@example.com", to: ["ops@example.com"] });
    expect(smtp.mails[0]?.text).toContain("Subject: =?UTF-8?B?");
  });

  it("end after the last attempt, and can be retried", async () => {
    receiver.status = 500;
    const id = await rig.trigger("posted");
    await desk.host();
    for (let attempt = 1; attempt <= DELIVERY_ATTEMPTS; attempt++) {
      await rig.until(async () => receiver.received.length >= attempt, `attempt ${attempt}`);
      await rig.until(async () => /500/.test((await desk.deliveries(id))[0]?.error ?? ""), "its end");
      // Without its error, so that the end of the next attempt can be distinguished.
      await rig.db.rows(
        adhoc("UPDATE delivery SET next_try_at = now(), error = NULL WHERE state = 'pending'"),
      );
    }
    const [dead] = await desk.settled(id);
    expect(dead).toMatchObject({ state: "dead", attempts: DELIVERY_ATTEMPTS });
    expect(await reviveDeliveries(rig.db, [dead?.id ?? 0, 999_999])).toEqual([dead?.id]);
    receiver.status = 204;
    await rig.until(async () => (await desk.deliveries(id))[0]?.state === "done", "the delivery");
    expect(await reviveDeliveries(rig.db, [dead?.id ?? 0])).toEqual([]);
  });

  it("of functions that crashed their workers end, and can be called again", async () => {
    const id = await rig.trigger("posted");
    await keepDeadlines(rig.db, deadlinesOfVersion, 1_000);
    await rig.db.rows(adhoc(`UPDATE deadline SET actions = '[{"kind":"function"}]' WHERE dag_run_id = $1`), [
      id,
    ]);
    await desk.host({ times: { buryEveryMs: 0 } });
    await rig.until(async () => (await desk.deliveries(id))[0]?.state === "handed", "the worker's turn");
    await rig.db.rows(adhoc("UPDATE callback SET tries = 5 WHERE dag_run_id = $1"), [id]);
    rig.wakeUps.send("runs");
    const [dead] = await desk.settled(id);
    expect(dead).toMatchObject({ state: "dead", error: expect.stringContaining("died over it") });
    await reviveDeliveries(rig.db, [dead?.id ?? 0]);
    rig.wakeUps.send("runs");
    await rig.until(async () => (await desk.deliveries(id))[0]?.state === "handed", "another turn");
    const left = await rig.db.rows<{ tries: number }>(
      adhoc("SELECT tries FROM callback WHERE dag_run_id = $1"),
      [id],
    );
    expect(left).toEqual([{ tries: 0 }]);
  });
});
