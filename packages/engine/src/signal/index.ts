/** Signals for programs outside the engine: clients, and what an implementation of one's own needs. */
export type { SignalParts, SignalServiceFactory } from "./configured-service.ts";
export { SignalClient, type SignalClientOptions } from "./grpc/client.ts";
export { HttpSignals, type HttpSignalsOptions } from "./http-signals.ts";
export type { SentSignal, Signal, SignalFilter, SignalStart, SignalToSend } from "./signal.ts";
export type * from "./signal-service.ts";
