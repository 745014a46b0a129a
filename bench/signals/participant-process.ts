/** A participant in a separate process, with its own connections: commands and results go through a pipe. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
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

export async function startParticipant(way: Way): Promise<ParticipantProcess> {
  const child = fork(PROGRAM, [JSON.stringify(way)], { execArgv: ["--conditions=source"] });
  const gone = once(child, "exit");
  await Promise.race([
    once(child, "message"),
    gone.then(() => {
      throw new Error("the process of a participant has ended");
    }),
  ]);
  const tell = teller(child);
  return {
    listen: (order) => tell("listen", order),
    heard: (signals) => tell("heard", signals),
    arrivals: () => tell("arrivals"),
    forget: () => tell("forget"),
    unlisten: () => tell("unlisten"),
    flood: (order) => tell("flood", order),
    pace: (order) => tell("pace", order),
    async stop() {
      if (child.connected) child.disconnect();
      await gone;
    },
  };
}

function teller(child: ChildProcess): <T>(name: keyof Commands, argument?: unknown) => Promise<T> {
  const open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let last = 0;
  child.on("message", ({ error, id, value }: Answer) => {
    const order = open.get(id);
    open.delete(id);
    if (error === undefined) order?.resolve(value as never);
    else order?.reject(new Error(`a participant failed: ${error}`));
  });
  child.on("exit", (code) => {
    for (const { reject } of open.values()) reject(new Error(`a participant ended with ${code}`));
  });
  return (name, argument) =>
    new Promise((resolve, reject) => {
      const order: Order = { id: ++last, name, argument };
      open.set(order.id, { resolve, reject });
      child.send(order);
    });
}
