/** Many sensors on one key: one trigger, polled once per interval for all of them. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../../result.ts";
import { digits } from "../../statistics.ts";
import { sharedFile } from "../dags.ts";
import { allDeferred, type WaitingRig } from "../waiting-rig.ts";

export async function sharedTrigger(rig: WaitingRig, options: { quick: boolean }): Promise<Figure[]> {
  const tasks = options.quick ? 1_000 : 10_000;
  const seconds = options.quick ? 3 : 10;
  let polls = 0;
  let isReady = false;
  let answeredAt = 0;
  const server = createServer((_, response) => {
    polls++;
    if (isReady && answeredAt === 0) answeredAt = performance.now();
    response.writeHead(isReady ? 200 : 404).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    await rig.publish({ "shared.ts": sharedFile(tasks, `http://127.0.0.1:${port}/`) });
    const ids = await rig.create(["shared"]);
    await allDeferred(rig, ids, tasks);
    await sleep(2_000);
    const before = polls;
    await sleep(seconds * 1_000);
    const perInterval = (polls - before) / seconds;
    isReady = true;
    await rig.ended(ids);
    const doneMs = performance.now() - answeredAt;
    return [
      {
        scenario: "f",
        what: `${tasks.toLocaleString("en-US")} sensors on one key: polls per interval`,
        value: perInterval,
        unit: "",
        // The interval has a jitter of 10%, so that triggers do not poll in step.
        bar: { atMost: 1.15 },
        note: `${polls - before} requests in ${seconds} intervals of 1 s (± 10 % each); all ${tasks.toLocaleString("en-US")} have ended ${digits(doneMs / 1_000)} s after the answer`,
      },
    ];
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
