/** The gRPC server and its client with TLS: which certificates are trusted, and the errors for others. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { certificate, type TestCertificate } from "../../../test/support/certificates.ts";
import { signalStage } from "../../../test/support/signal-subject.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { silentLogger } from "../../service/logger.ts";
import { openSignals } from "../configured-service.ts";
import { Collector } from "../conformance/conformance.ts";
import { SignalClient } from "./client.ts";
import { GrpcSignalServer } from "./server.ts";
import { type ClientTls, clientCredentials, type ServerTls, serverCredentials } from "./tls.ts";

const TOKEN = "tw_secret";

let folder: string;
let file: { readonly [name: string]: string };
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tw-tls-"));
  const root = certificate("root");
  const server = certificate("server", root);
  const guests = certificate("guests");
  const guest = certificate("guest", guests);
  const alone = certificate("alone");
  file = Object.fromEntries(
    await Promise.all(
      Object.entries({
        "root.pem": root.cert,
        "server.pem": server.cert,
        "server.key": server.key,
        "guests.pem": guests.cert,
        "guest.pem": guest.cert,
        "guest.key": guest.key,
        "alone.pem": alone.cert,
        "alone.key": alone.key,
        "text.pem": "no certificate",
        "broken.pem": server.cert.replace(/\n(.{20})/, "\nAAAA$1"),
        "sealed.key": sealed(alone),
      }).map(async ([name, text]) => {
        await writeFile(join(folder, name), text);
        return [name, join(folder, name)] as const;
      }),
    ),
  );
  return () => rm(folder, { recursive: true });
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function sealed({ privateKey }: TestCertificate): string {
  const seal = { cipher: "aes-256-cbc", passphrase: "secret" };
  return privateKey.export({ type: "pkcs8", format: "pem", ...seal }) as string;
}

async function serve(tls?: ServerTls) {
  const { stage, close } = await signalStage();
  closing.push(close);
  const server = new GrpcSignalServer({
    service: stage.open(),
    authenticate: async (token) => (token === TOKEN ? "ada" : undefined),
    host: "127.0.0.1",
    port: 0,
    logger: silentLogger,
    ...(tls === undefined ? {} : { tls }),
  });
  await server.start();
  closing.push(() => server.stop());
  return { server, stage };
}

function connect(url: string, tls: ClientTls = {}) {
  const client = SignalClient.connect(url, { token: TOKEN, tls });
  closing.push(() => client.close());
  return client;
}

const refused = (why: string) =>
  expect.objectContaining({ code: "SIGNAL_TLS_INVALID", message: expect.stringContaining(why) });

describe("signals over gRPC with TLS", () => {
  it("are sent and received by clients that trust the server's certificate", async () => {
    const { server } = await serve({ cert: file["server.pem"], key: file["server.key"] });
    expect(server.url).toBe(`grpcs://${server.address}`);
    const client = connect(server.url, { ca: file["root.pem"] });
    const collector = new Collector();
    await client.listen("l", { key: "k" }, collector);
    await client.send([{ key: "k", value: 1 }]);
    await collector.reach(1);
    expect(collector.signals.map(({ value }) => value)).toEqual([1]);
    // A self-signed certificate.
    const alone = await serve({ cert: file["alone.pem"], key: file["alone.key"] });
    await connect(alone.server.url, { ca: file["alone.pem"] }).send([{ key: "k" }]);
  });

  it("are not sent to a server that is untrusted or has no TLS, and fail at once with the reason", async () => {
    const { server } = await serve({ cert: file["server.pem"], key: file["server.key"] });
    const plain = await serve();
    for (const [url, tls, why] of [
      [server.url, {}, "is not signed by a CA that this client trusts. Give the CA"],
      [server.url, { ca: file["guests.pem"] }, "is not signed by a CA that this client trusts. Give the CA"],
      [plain.server.url.replace("grpc:", "grpcs:"), { ca: file["root.pem"] }, "it does not speak TLS"],
    ] as const) {
      const sent = connect(url, tls).send([{ key: "k" }]);
      await expect(sent).rejects.toEqual(refused(why));
      // In our words, without those of OpenSSL and gRPC.
      await expect(sent).rejects.toThrow(/^(?!.*(?:Resolution note|SSL routines|Last error)).*$/s);
      // A listener fails too instead of waiting.
      const heard = connect(url, tls).listen("l", {}, new Collector());
      await expect(heard).rejects.toEqual(refused(why));
    }
  });

  it("are accepted only from clients with a certificate if the server requires one", async () => {
    const tls = { cert: file["server.pem"], key: file["server.key"], ca: file["guests.pem"] };
    const { server } = await serve(tls);
    const ca = file["root.pem"];
    const guest = connect(server.url, { ca, cert: file["guest.pem"], key: file["guest.key"] });
    await guest.send([{ key: "k", value: "guest" }]);
    for (const stranger of [{ ca }, { ca, cert: file["alone.pem"], key: file["alone.key"] }]) {
      const listed = connect(server.url, stranger).list({});
      await expect(listed).rejects.toMatchObject({ code: expect.stringMatching(/^SIGNAL_/) });
    }
    expect((await guest.list({})).signals).toMatchObject([{ value: "guest" }]);
  });

  it("use the certificates of the configuration for a remote service", async () => {
    const tls = { cert: file["server.pem"], key: file["server.key"], ca: file["guests.pem"] };
    const { server, stage } = await serve(tls);
    const config = {
      signals: server.url,
      signalsToken: TOKEN,
      signalsCa: file["root.pem"],
      signalsClientCert: file["guest.pem"],
      signalsClientKey: file["guest.key"],
    };
    const parts = { database: stage.db, logger: silentLogger, wakeUps: new WakeUps(stage.db) };
    const service = await openSignals({ config, ...parts });
    closing.push(() => service.close());
    await service.send([{ key: "k" }]);
    const clear = openSignals({
      config: { ...config, signals: server.url.replace("grpcs:", "grpc:") },
      ...parts,
    });
    await expect(clear).rejects.toEqual(refused("write the address with grpcs://"));
  });
});

describe("invalid TLS files", () => {
  it.each<[ServerTls, string]>([
    [{ cert: "missing.pem", key: "server.key" }, "missing.pem cannot be read: ENOENT"],
    [{ cert: "server.pem", key: "missing.key" }, "missing.key cannot be read: ENOENT"],
    [{ cert: "server.pem" }, "has no key: give both"],
    [{ key: "server.key" }, "has no certificate: give both"],
    [{ ca: "root.pem" }, "the server has no certificate itself"],
    [{ cert: "server.pem", key: "server.key", ca: "missing.pem" }, "missing.pem cannot be read"],
    [{ cert: "server.pem", key: "server.key", ca: "text.pem" }, "text.pem holds no certificate"],
    [{ cert: "text.pem", key: "server.key" }, "text.pem holds no certificate"],
    [{ cert: "broken.pem", key: "server.key" }, "certificate 1 of"],
    [{ cert: "server.pem", key: "server.pem" }, "holds no private key"],
    [{ cert: "alone.pem", key: "sealed.key" }, "without a passphrase"],
    [{ cert: "server.pem", key: "alone.key" }, "does not belong to the certificate"],
  ])("%j", (tls, why) => {
    const paths = Object.fromEntries(Object.entries(tls).map(([part, name]) => [part, join(folder, name!)]));
    expect(() => serverCredentials(paths)).toThrow(refused(why));
    if (tls.cert !== undefined || tls.key !== undefined)
      expect(() => clientCredentials(paths)).toThrow(refused(why));
  });

  it("prevent the server from starting", async () => {
    const { stage } = await serve();
    const server = new GrpcSignalServer({
      service: stage.open(),
      authenticate: async () => undefined,
      host: "127.0.0.1",
      port: 0,
      tls: { cert: file["server.pem"], key: file["alone.key"] },
      logger: silentLogger,
    });
    await expect(server.start()).rejects.toEqual(refused("does not belong"));
    await server.stop();
  });
});
