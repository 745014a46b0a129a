/** Signals for programs outside of the engine: clients, and the types for a custom implementation. */
export type { SignalParts, SignalServiceFactory } from "./configured-service.ts";
export { SignalClient, type SignalClientOptions } from "./grpc/client.ts";
export { HttpSignals, type HttpSignalsOptions } from "./http-signals.ts";
export type { SentSignal, Signal, SignalFilter, SignalStart, SignalToSend } from "./signal.ts";
export type * from "./signal-service.ts";
