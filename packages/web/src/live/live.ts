/** What has changed on the server, for the components of this page. */
import { useEffect, useRef, useSyncExternalStore } from "react";
import { BASE } from "../api/client.ts";
import { connectionTo } from "./connection.ts";
import { LiveHub } from "./hub.ts";
import type { LiveMessage, LiveState, LostMessages } from "./messages.ts";
import { ALIVE_MS, type FromPage, type ToPage } from "./port.ts";

type Listener = (message: LiveMessage | LostMessages) => void;

const listeners = new Map<string, Set<Listener>>();
const stateListeners = new Set<() => void>();
let state: LiveState = "connecting";
let send: ((topics: readonly string[] | null) => void) | undefined;

function receive({ message, state: next }: ToPage): void {
  if (message !== undefined) for (const listener of listeners.get(message.topic) ?? []) listener(message);
  if (next === undefined) return;
  state = next;
  for (const each of stateListeners) each();
}

/** By the shared worker; where browsers have none, by a connection of this page. */
function connect(): (topics: readonly string[] | null) => void {
  const server = `${location.origin}${BASE}`;
  if (typeof SharedWorker === "undefined") {
    const hub = new LiveHub(connectionTo(server));
    const self = {
      onMessage: (message: LiveMessage | LostMessages) => receive({ message }),
      onState: (next: LiveState) => receive({ state: next }),
    };
    return (topics) => (topics === null ? hub.unsubscribe(self) : hub.subscribe(self, topics));
  }
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: server });
  worker.port.onmessage = ({ data }: MessageEvent<ToPage>) => receive(data);
  const post = (message: FromPage) => worker.port.postMessage(message);
  setInterval(() => post({}), ALIVE_MS);
  return (topics) => post({ topics });
}

let pending = false;

/** Sends the topics of all components once they are all known. */
function topicsChanged(): void {
  if (pending) return;
  pending = true;
  queueMicrotask(() => {
    pending = false;
    send ??= start();
    send([...listeners.keys()]);
  });
}

function start(): (topics: readonly string[] | null) => void {
  const made = connect();
  window.addEventListener("pagehide", () => made(null));
  // Restored from the browser's cache of pages.
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) made([...listeners.keys()]);
  });
  return made;
}

function subscribe(topic: string, listener: Listener): () => void {
  const known = listeners.get(topic) ?? new Set();
  listeners.set(topic, known.add(listener));
  topicsChanged();
  return () => {
    known.delete(listener);
    if (known.size === 0 && listeners.get(topic) === known) listeners.delete(topic);
    topicsChanged();
  };
}

/** Calls back with every message of the topic while the component is shown; no topic: never. */
export function useLive(topic: string | null, onMessage: Listener): void {
  const current = useRef(onMessage);
  current.current = onMessage;
  useEffect(() => {
    if (topic === null) return;
    return subscribe(topic, (message) => current.current(message));
  }, [topic]);
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => {
      stateListeners.add(listener);
      return () => stateListeners.delete(listener);
    },
    () => state,
  );
}
