/** The service of signals.proto, loaded for the gRPC library. */
import { join } from "node:path";
import { loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

/** Beside this file both in the source tree and in the built package. */
const loaded = loadPackageDefinition(
  loadSync(join(import.meta.dirname, "signals.proto"), { longs: Number, defaults: true, oneofs: true }),
);

const { signals } = loaded.tradewind as unknown as {
  signals: { v1: { Signals: ServiceClientConstructor } };
};

export const SignalsClient = signals.v1.Signals;
export const SIGNALS_SERVICE = SignalsClient.service;

/** Trailing metadata with the code of an error. */
export const CODE_KEY = "tradewind-code";

/** For both ends: a signal's value has up to 1 MB, a message several of them. */
export const CHANNEL_OPTIONS = {
  "grpc.max_receive_message_length": 8 * 1024 * 1024,
  "grpc.max_send_message_length": 8 * 1024 * 1024,
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 10_000,
} as const;

/** Maximum size of a message when it is sent: well below the limit of receivers. */
export const MESSAGE_BYTES = 2 * 1024 * 1024;
