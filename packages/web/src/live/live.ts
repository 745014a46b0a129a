/** The live stream: what has changed on the server. Placeholder of the connection until the stream's client is in. */
import { useSyncExternalStore } from "react";

export type LiveState = "live" | "connecting" | "offline";

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    () => () => {},
    () => "connecting",
  );
}
