/** A participant in a separate process, with its own connections: commands and results go through a pipe. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Child, showOutput, watchChild } from "../child.ts";
import type { Commands } from "./participant.ts";
import type { Way } from "./service.ts";

export interface Order {
  readonly id: number;
  readonly name: keyof Commands;
  readonly argument: unknown;
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

export interface ParticipantProcess extends Commands {
  stop(): Promise<void>;
}

const PROGRAM = fileURLToPath(new URL("./participant-program.ts", import.meta.url));

/** An order that takes longer has failed: a signal was lost, or the service does not answer. */
const LIMIT_MS = 300_000;

export async function startParticipant(way: Way): Promise<ParticipantProcess> {
  const program = fork(PROGRAM, [JSON.stringify(way)], {
    execArgv: ["--conditions=source"],
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  const child = watchChild("a participant", program, () => {
    if (program.connected) program.disconnect();
  });
  showOutput(child);
  await child.during(once(program, "message"));
  const tell = teller(child);
  return {
    listen: (order) => tell("listen", order),
    heard: (signals) => tell("heard", signals),
    arrivals: () => tell("arrivals"),
    forget: () => tell("forget"),
    unlisten: () => tell("unlisten"),
    flood: (order) => tell("flood", order),
    pace: (order) => tell("pace", order),
    stop: () => child.stop(),
  };
}

function teller(child: Child): <T>(name: keyof Commands, argument?: unknown) => Promise<T> {
  const open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let last = 0;
  child.process.on("message", ({ error, id, value }: Answer) => {
    const order = open.get(id);
    open.delete(id);
    if (error === undefined) order?.resolve(value as never);
    else order?.reject(new Error(`a participant failed: ${error}`));
  });
  return <T>(name: keyof Commands, argument?: unknown) => {
    const order: Order = { id: ++last, name, argument };
    const answer = new Promise<T>((resolve, reject) => {
      open.set(order.id, { resolve, reject });
      // Without a callback, a closed pipe would be an uncaught error instead of the child's.
      child.process.send(order, () => {});
    });
    return child.during(within(LIMIT_MS, name, answer));
  };
}

async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  const limit = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    limit.reject(new Error(`a participant has not finished "${what}" within ${ms / 1_000} s`));
  }, ms);
  try {
    return await Promise.race([work, limit.promise]);
  } finally {
    clearTimeout(timer);
  }
}
