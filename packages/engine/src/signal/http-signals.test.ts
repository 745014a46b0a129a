import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { serveApi, TOKEN } from "../../test/api/signal-front.ts";
import { type SignalStage, signalSubject } from "../../test/support/signal-subject.ts";
import { Collector, signalServiceConformance } from "./conformance/conformance.ts";
import { HttpSignals } from "./http-signals.ts";

const front = (notify: boolean) => async (stage: SignalStage) => {
  const api = await serveApi(stage.url, notify);
  const service = HttpSignals.connect(api.url, { token: TOKEN });
  return {
    service,
    close: async () => {
      await service.close();
      await api.close();
    },
  };
};

describe("signals over HTTP", () => {
  for (const { name, run } of signalServiceConformance(() => signalSubject({ front: front(true) })))
    it(name, run);

  it("reports which service rejected the token", async () => {
    const subject = await signalSubject({
      front: async (stage) => {
        const api = await serveApi(stage.url);
        const service = HttpSignals.connect(api.url, { token: "tw_wrong" });
        return {
          service,
          close: async () => {
            await service.close();
            await api.close();
          },
        };
      },
    });
    // As over gRPC.
    const refused = { code: "UNAUTHENTICATED", message: expect.stringContaining("unknown or has expired") };
    await expect(subject.service.send([{ key: "k" }])).rejects.toMatchObject(refused);
    // None of these may wait forever.
    for (const name of ["l", null])
      await expect(subject.service.listen(name, {}, new Collector())).rejects.toMatchObject(refused);
    await subject.close();
    expect(() => HttpSignals.connect("ftp://x", { token: "t" })).toThrow("Invalid signal service address");
  });
});

it("does not repeat the effect of a signal if its commit does not reach the service", async () => {
  let lost = 0;
  const proxy = createServer(async (request, response) => {
    if (lost === 0 && request.url!.endsWith("/commit")) {
      lost++;
      request.socket.destroy();
      return;
    }
    const { authorization, "content-type": type } = request.headers;
    const body = await text(request);
    const answer = await fetch(`${target}${request.url}`, {
      method: request.method!,
      headers: { ...(authorization && { authorization }), ...(type && { "content-type": type }) },
      body: body === "" ? null : body,
    });
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  });
  let target = "";
  const subject = await signalSubject({
    front: async (stage) => {
      const api = await serveApi(stage.url);
      target = api.url;
      await once(proxy.listen(0, "127.0.0.1"), "listening");
      const { port } = proxy.address() as AddressInfo;
      const service = HttpSignals.connect(`http://127.0.0.1:${port}`, { token: TOKEN });
      const close = async () => {
        await service.close();
        proxy.closeAllConnections();
        proxy.close();
        await api.close();
      };
      return { service, close };
    },
  });
  const collector = new Collector();
  await subject.service.listen("l", { key: "k" }, collector);
  await subject.service.send([{ key: "k", value: 1 }]);
  await collector.reach(1);
  await expect.poll(() => lost).toBe(1);
  await subject.service.send([{ key: "k", value: 2 }]);
  await collector.reach(2);
  expect(collector.signals.map(({ value }) => value)).toEqual([1, 2]);
  await subject.close();
});

describe("signals over HTTP, with NOTIFY off", () => {
  const cases = signalServiceConformance(() => signalSubject({ front: front(false), notify: false }));
  for (const { name, run } of cases.filter(({ name }) => /20 writers|late/.test(name))) it(name, run);
});
