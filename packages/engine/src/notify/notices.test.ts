import { expect, it } from "vitest";
import type { TakenDelivery } from "../store/notify/deliveries.ts";
import { deliver, type SentAction } from "./notices.ts";

it("promises nothing of a delivery that may be its last: it says what makes the connection, and what begins again", async () => {
  const delivery = { id: 1, action: { kind: "webhook", to: "pager" } } as TakenDelivery;
  const means = { connection: async () => undefined, signal: AbortSignal.timeout(10_000) };
  const { action } = delivery;
  await expect(deliver(action as SentAction, delivery, means)).rejects.toMatchObject({
    code: "NOTICE_CONNECTION",
    message:
      'There is no connection "pager". Make it with `tradewind connections set pager`; `tradewind deliveries retry` begins again with what was given up by then.',
  });
});
