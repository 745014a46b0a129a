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

describe("signals over HTTP, with NOTIFY off", () => {
  const cases = signalServiceConformance(() => signalSubject({ front: front(false), notify: false }));
  for (const { name, run } of cases.filter(({ name }) => /20 writers|late/.test(name))) it(name, run);
});
