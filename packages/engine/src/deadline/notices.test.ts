import { expect, it } from "vitest";
import type { TakenDelivery } from "../store/deadline-deliveries.ts";
import { deliver } from "./notices.ts";

it("promises nothing of a delivery that may be its last: it says what makes the connection, and what begins again", async () => {
  const delivery = { id: 1, action: { kind: "webhook", to: "pager" } } as TakenDelivery;
  await expect(deliver(delivery, async () => undefined, AbortSignal.timeout(10_000))).rejects.toMatchObject({
    code: "DEADLINE_CONNECTION",
    message:
      'There is no connection "pager". Make it with `tradewind connections set pager`; `tradewind deadlines retry` begins again with what was given up by then.',
  });
});
