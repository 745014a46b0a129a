import { expect, it } from "vitest";
import type { TakenDelivery } from "../store/notify/deliveries.ts";
import { deliver, type SentAction } from "./notices.ts";

it("names the commands that create a missing connection and retry the delivery", async () => {
  const delivery = { id: 1, action: { kind: "webhook", to: "pager" } } as TakenDelivery;
  const means = { connection: async () => undefined, signal: AbortSignal.timeout(10_000) };
  const { action } = delivery;
  await expect(deliver(action as SentAction, delivery, means)).rejects.toMatchObject({
    code: "NOTICE_CONNECTION",
    message:
      'Connection "pager" does not exist. Create it with `tradewind connections set pager`, then retry failed deliveries with `tradewind deliveries retry`.',
  });
});
