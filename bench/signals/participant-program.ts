/** A process with one participant: receives commands from its parent, and returns results. Ends with its parent. */
import { Participant } from "./participant.ts";
import type { Answer, Order } from "./participant-process.ts";
import { openService, type Way } from "./service.ts";

const { close, service } = await openService(JSON.parse(process.argv[2] ?? "") as Way);
const participant = new Participant(service);

process.on("message", async ({ argument, id, name }: Order) => {
  const answer: Answer = await (participant[name] as (argument: unknown) => Promise<unknown>)
    .call(participant, argument)
    .then(
      (value) => ({ id, value }),
      (error: unknown) => ({
        id,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }),
    );
  if (process.connected) process.send?.(answer);
});
process.once("disconnect", () => void close());
process.send?.({ id: 0, value: null } satisfies Answer);
