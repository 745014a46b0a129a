/** Shared by all tabs of the browser: one stream, however many tabs are open. */
import { connectionTo } from "./connection.ts";
import { LiveHub, type Subscriber } from "./hub.ts";
import { FORGET_MS, type FromPage, type ToPage } from "./port.ts";

interface Scope {
  readonly name: string;
  onconnect: ((event: MessageEvent) => void) | null;
}
const scope = globalThis as unknown as Scope;

/** The name of the worker is the address of the server. */
const hub = new LiveHub(connectionTo(scope.name));
/** Pages that are closed do not always say so; open ones send a sign of life. */
const seen = new Map<Subscriber, number>();

setInterval(() => {
  for (const [subscriber, at] of seen) if (Date.now() - at > FORGET_MS) forget(subscriber);
}, FORGET_MS / 4);

function forget(subscriber: Subscriber): void {
  seen.delete(subscriber);
  hub.unsubscribe(subscriber);
}

scope.onconnect = ({ ports: [port] }) => {
  const send = (message: ToPage) => port!.postMessage(message);
  const subscriber: Subscriber = {
    onMessage: (message) => send({ message }),
    onState: (state) => send({ state }),
  };
  port!.onmessage = ({ data }: MessageEvent<FromPage>) => {
    if (data.topics === null) return forget(subscriber);
    seen.set(subscriber, Date.now());
    if (data.topics !== undefined) hub.subscribe(subscriber, data.topics);
  };
};
