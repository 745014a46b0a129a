import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { type SignalStage, signalStage, signalSubject } from "../../../test/support/signal-subject.ts";
import { silentLogger } from "../../service/logger.ts";
import { Collector, signalServiceConformance } from "../conformance/conformance.ts";
import type { PostgresSignals } from "../postgres-signals.ts";
import { SignalClient } from "./client.ts";
import { CODE_KEY, SignalsClient } from "./definition.ts";
import { GrpcSignalServer } from "./server.ts";

const TOKEN = "tw_secret";
const TOTAL = 150;

async function serve(
  service: PostgresSignals,
  port = 0,
  authenticate = async (token: string): Promise<string | undefined> => (token === TOKEN ? "ada" : undefined),
): Promise<GrpcSignalServer> {
  const server = new GrpcSignalServer({
    service,
    authenticate,
    host: "127.0.0.1",
    port,
    logger: silentLogger,
  });
  await server.start();
  return server;
}

async function front(stage: SignalStage) {
  const server = await serve(stage.open());
  const service = SignalClient.connect(`grpc://${server.address}`, { token: TOKEN });
  return {
    service,
    close: async () => {
      await service.close();
      await server.stop();
    },
  };
}

describe("signals over gRPC", () => {
  for (const { name, run } of signalServiceConformance(() => signalSubject({ front }))) it(name, run);
});

describe("signals over gRPC, with NOTIFY off", () => {
  const cases = signalServiceConformance(() => signalSubject({ front, notify: false }));
  for (const { name, run } of cases.filter(({ name }) => /20 writers|late/.test(name))) it(name, run);
});

describe("the address of a gRPC client", () => {
  it.each([
    "grpc://127.0.0.1:8081.",
    "grpc://127.0.0.1:port",
    "grpc://127.0.0.1:65536",
    "grpc://::1:8081",
    "grpc://127.0.0.1:8081/signals",
    "grpc://user@127.0.0.1:8081",
    "grpc://127.0.0.1:8081 ",
    "http://127.0.0.1:8080",
  ])("is rejected at once if it is invalid: %j", (address) => {
    expect(() => SignalClient.connect(address, { token: TOKEN })).toThrow(
      expect.objectContaining({ code: "SIGNAL_SERVICE_ADDRESS", message: expect.stringContaining(address) }),
    );
  });

  it.each(["grpc://127.0.0.1:8081", "grpc://[::1]:8081/", "grpcs://my_host:8081", "grpcs://signals.example"])(
    "is a host with an optional port: %j",
    async (address) => {
      await SignalClient.connect(address, { token: TOKEN }).close();
    },
  );
});

describe("the gRPC server", () => {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function open() {
    const { stage, close } = await signalStage();
    closing.push(close);
    const service = stage.open();
    const server = await serve(service);
    closing.push(() => server.stop());
    return { server, service, stage };
  }

  /** A call like the generated code of another language makes it. */
  function raw(address: string, token: string | null, call: string, request: object) {
    const client = new SignalsClient(address, credentials.createInsecure());
    closing.push(async () => client.close());
    const metadata = new Metadata();
    if (token !== null) metadata.set("authorization", `Bearer ${token}`);
    return new Promise<{ error: ServiceError | null; answer: unknown }>((resolve) => {
      const method = (client as unknown as Record<string, (...args: unknown[]) => void>)[call]!;
      method.call(client, request, metadata, (error: ServiceError | null, answer: unknown) =>
        resolve({ error, answer }),
      );
    });
  }

  it("rejects calls without a valid token, with a status and a code", async () => {
    const { server } = await open();
    for (const token of [null, "tw_wrong"]) {
      for (const call of ["Send", "List", "GetPosition", "ClaimListener", "ListDeadLetters"]) {
        const { error } = await raw(server.address, token, call, {});
        expect([call, error?.code]).toEqual([call, status.UNAUTHENTICATED]);
      }
      const client = new SignalsClient(server.address, credentials.createInsecure());
      closing.push(async () => client.close());
      const metadata = new Metadata();
      if (token !== null) metadata.set("authorization", `Bearer ${token}`);
      const stream = (client as unknown as Record<string, (...args: unknown[]) => NodeJS.EventEmitter>)[
        "Listen"
      ]!({}, metadata);
      const [error] = await once(stream, "error").catch((thrown) => [thrown]);
      expect((error as ServiceError).code).toBe(status.UNAUTHENTICATED);
    }
    const bad = async (call: string, request: object) => {
      const { error } = await raw(server.address, TOKEN, call, request);
      return [error?.code, error?.metadata.get(CODE_KEY)[0]];
    };
    expect(await bad("Send", { signals: [{ key: "" }] })).toEqual([
      status.INVALID_ARGUMENT,
      "SIGNAL_INVALID",
    ]);
    expect(await bad("Send", { signals: [{ key: "k", value: "{" }] })).toEqual([
      status.INVALID_ARGUMENT,
      "SIGNAL_INVALID",
    ]);
    expect(await bad("Send", { signals: [{ key: "k", namespace: "task" }] })).toEqual([
      status.INVALID_ARGUMENT,
      "SIGNAL_INVALID",
    ]);
    expect(await bad("GetPosition", { start: { place: { position: "x" } } })).toEqual([
      status.INVALID_ARGUMENT,
      "SIGNAL_POSITION_INVALID",
    ]);
    expect(await bad("CommitListener", { name: "l", holder: "h", position: "1-1" })).toEqual([
      status.FAILED_PRECONDITION,
      "SIGNAL_LISTENER_LOST",
    ]);
  });

  it("ends the listeners of an unknown or revoked token", async () => {
    const { service } = await open();
    let isKnown = true;
    const fickle = await serve(service, 0, async () => (isKnown ? "ada" : undefined));
    closing.push(() => fickle.stop());
    const connectTo = () => {
      const client = SignalClient.connect(fickle.url, { token: TOKEN });
      closing.push(() => client.close());
      return client;
    };
    const refused = { code: "UNAUTHENTICATED", message: expect.stringContaining(fickle.url) };
    const told = Promise.withResolvers<Error>();
    const options = { leaseMs: 300 };
    const looking = await connectTo().listen("looking", { key: "k" }, new Collector(), options);
    const telling = await connectTo().listen("telling", { key: "k" }, new Collector(), {
      ...options,
      onError: told.resolve,
    });
    isKnown = false;
    await expect(looking.done).rejects.toMatchObject(refused);
    expect(await told.promise).toMatchObject(refused);
    await expect(telling.done).rejects.toMatchObject(refused);
    expect([looking.isActive, telling.isActive]).toEqual([false, false]);
    await telling.stop();
    for (const name of ["l", null])
      await expect(connectTo().listen(name, {}, new Collector())).rejects.toMatchObject(refused);
  });

  it("ends an open stream within 5 s after its token is revoked, even without a signal", async () => {
    const { service } = await open();
    let isKnown = true;
    const fickle = await serve(service, 0, async () => (isKnown ? "ada" : undefined));
    closing.push(() => fickle.stop());
    const client = new SignalsClient(fickle.address, credentials.createInsecure());
    closing.push(async () => client.close());
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${TOKEN}`);
    const stream = (client as unknown as Record<string, (...args: unknown[]) => NodeJS.EventEmitter>)[
      "Listen"
    ]!({}, metadata);
    const ended = new Promise<ServiceError>((resolve) => stream.once("error", resolve));
    await once(stream, "data");
    isKnown = false;
    const at = performance.now();
    expect((await ended).code).toBe(status.UNAUTHENTICATED);
    expect(performance.now() - at).toBeLessThan(5_000);
  });

  it("uses the token's name as the default sender", async () => {
    const { server } = await open();
    const { answer, error } = await raw(server.address, TOKEN, "Send", {
      signals: [{ key: "k", value: "[1]" }],
    });
    expect(error).toBeNull();
    expect(answer).toMatchObject({ signals: [{ key: "k", namespace: "default", isDuplicate: false }] });
    const listed = await raw(server.address, TOKEN, "List", {});
    expect(listed.answer).toMatchObject({ signals: [{ sender: "ada", value: "[1]" }] });
  });

  it("limits its memory for a listener that does not read", async () => {
    const { server, service } = await open();
    const value = "x".repeat(200_000);
    const client = new SignalsClient(server.address, credentials.createInsecure(), {
      "grpc.max_receive_message_length": 8 * 1024 * 1024,
    });
    closing.push(async () => client.close());
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${TOKEN}`);
    const stream = (
      client as unknown as Record<string, (...args: unknown[]) => NodeJS.ReadableStream & { cancel(): void }>
    )["Listen"]!({ start: { beginning: true } }, metadata);
    stream.on("error", () => {});
    stream.pause();
    const quick = new Collector();
    await service.listen("quick", {}, quick, { from: "start" });
    for (let at = 0; at < 200; at++) await service.send([{ key: `k${at % 5}`, value: [at, value] }]);
    await quick.reach(200);
    // Now it reads, and receives everything in order.
    const got: number[] = [];
    const all = Promise.withResolvers<void>();
    stream.on("data", (message) => {
      const { signals } = message as unknown as { signals: { value: string }[] };
      got.push(...signals.map((signal) => (JSON.parse(signal.value) as [number])[0]));
      if (got.length === 200) all.resolve();
    });
    stream.resume();
    await all.promise;
    expect(got).toEqual([...Array(200).keys()]);
    stream.cancel();
  });

  it("serves its clients again after a restart, and no signal is missed or sent twice", async () => {
    const { server, service, stage } = await open();
    const port = Number(server.address.split(":").at(-1));
    const client = SignalClient.connect(`grpc://127.0.0.1:${port}`, { token: TOKEN });
    closing.push(() => client.close());
    const named = new Collector();
    const nameless = new Collector();
    await client.listen("named", { key: "k" }, named, { leaseMs: 1_000 });
    await client.listen(null, { key: "k" }, nameless);
    await client.send([{ key: "k", value: 0 }]);
    await Promise.all([named.reach(1), nameless.reach(1)]);
    await server.stop();
    const sending = Array.from({ length: 10 }, (_, at) => client.send([{ key: "k", value: at + 1 }]));
    await service.send([{ key: "k", value: "directly" }]);
    const again = await serve(stage.open(), port);
    closing.push(() => again.stop());
    await Promise.all(sending);
    await Promise.all([named.reach(12), nameless.reach(12)]);
    for (const collector of [named, nameless]) {
      const versions = collector.signals.map(({ version }) => version);
      expect(versions).toEqual(versions.toSorted((a, b) => a - b));
      expect(new Set(versions).size).toBe(12);
    }
    expect((await service.list({ key: "k" })).signals).toHaveLength(12);
  });

  it("survives connections that are cut repeatedly", async () => {
    const { server, service } = await open();
    const port = Number(server.address.split(":").at(-1));
    const sockets = new Set<Socket>();
    const cutter = createServer((socket) => {
      const upstream = connect(port, "127.0.0.1");
      for (const end of [socket, upstream]) {
        sockets.add(end);
        end.on("error", () => {});
        end.on("close", () => {
          socket.destroy();
          upstream.destroy();
        });
      }
      socket.pipe(upstream).pipe(socket);
    });
    cutter.listen(0, "127.0.0.1");
    await once(cutter, "listening");
    closing.push(async () => cutter.close());
    const through = (cutter.address() as { port: number }).port;
    const client = SignalClient.connect(`grpc://127.0.0.1:${through}`, { token: TOKEN });
    closing.push(() => client.close());
    const seen = new Set<unknown>();
    const all = Promise.withResolvers<void>();
    const collector = new Collector(async (signals) => {
      for (const { value } of signals) seen.add(value);
      if (seen.size === TOTAL) all.resolve();
    });
    await client.listen("l", { key: "*" }, collector, { leaseMs: 1_000 });
    let cuts = 0;
    const cutting = setInterval(() => {
      cuts++;
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    }, 120);
    closing.push(async () => clearInterval(cutting));
    for (let at = 0; at < TOTAL; at++) await client.send([{ key: `k${at % 3}`, value: at }]);
    clearInterval(cutting);
    await all.promise;
    expect(cuts).toBeGreaterThan(0);
    const stored = (await service.list({ limit: 1_000 })).signals.map(({ value }) => value);
    expect(stored).toEqual([...Array(TOTAL).keys()]);
    // At least once: a signal whose commit was lost comes again. The first deliveries are in order.
    for (const values of collector.byKey().values()) {
      const first = [...new Set(values.map(Number))];
      expect(first).toEqual(first.toSorted((a, b) => a - b));
    }
  });
});
