import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { SchedulerProcess } from "../../test/fault/scheduler-process.ts";
import { NoticeFixture } from "../../test/support/notice-fixture.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";

describe("the function of a deadline", () => {
  let rig: SchedulerRig;
  let desk: NoticeFixture;
  let gate: string;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    desk = new NoticeFixture(rig);
    gate = `${rig.root}/gate`;
    await writeFile(rig.ledger, "");
    await rig.publish({
      "late.ts": `
        import { dag, deadline } from "tradewind";
        import { appendFileSync, existsSync } from "node:fs";
        import { setTimeout as sleep } from "node:timers/promises";
        const told = async (ctx) => {
          appendFileSync(${JSON.stringify(rig.ledger)}, process.pid + "\\n");
          while (!existsSync(${JSON.stringify(gate)})) await sleep(20);
        };
        export default dag("late", { deadline: deadline({ after: "queued", within: "1ms", then: [told] }) }, (d) => {
          d.task("only", () => 1);
        });
      `,
    });
  });

  const calls = async () => (await readFile(rig.ledger, "utf8")).split("\n").filter(Boolean).length;

  it("is called again if the scheduler that ran it is killed", async () => {
    const place = {
      home: `${rig.root}/first`,
      databaseUrl: rig.url,
      ledger: rig.ledger,
      parallelism: 2,
      lease: [2_000, 500, 400] as const,
    };
    const first = new SchedulerProcess(place);
    onTestFinished(() => first.discard());
    expect(await first.ready).toBe("up");
    await desk.host();
    const id = await rig.trigger("late");
    await rig.until(async () => (await calls()) === 1, "the first call", 60_000);
    expect(await desk.deliveries(id)).toMatchObject([{ state: "handed", attempts: 1 }]);
    await first.kill();
    await writeFile(gate, "");
    await rig.scheduler();
    expect(await desk.settled(id, 90_000)).toMatchObject([{ state: "done", attempts: 1, error: null }]);
    expect(await calls()).toBe(2);
    expect(await rig.ended(id)).toBe("success");
    expect(existsSync(gate)).toBe(true);
  }, 180_000);
});
