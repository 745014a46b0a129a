import type { Connection } from "./hub.ts";

/** The stream of the server at an address, which ends with a slash. */
export function connectionTo(base: string): Connection {
  return {
    open: (topics) => new EventSource(`${base}ui/stream?topics=${encodeURIComponent(topics.join(","))}`),
    change: async (streamId, topics) => {
      const response = await fetch(`${base}ui/stream/${encodeURIComponent(streamId)}/topics`, {
        method: "PUT",
        headers: { "content-type": "application/json", "x-tradewind-csrf": "1" },
        body: JSON.stringify({ topics }),
      });
      return response.ok;
    },
  };
}
