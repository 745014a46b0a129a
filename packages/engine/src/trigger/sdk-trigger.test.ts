/** The SDK's own trigger classes in the real child: tests both sides of the protocol together. */
import { expect, it } from "vitest";
import { RunnerUnderTest } from "../../test/trigger/runner-under-test.ts";

it("runs a Trigger class of a DAG file that does not export it", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(`import { dag, Trigger } from "tradewind";
class Countdown extends Trigger {
  static id = "countdown";
  async *run(ctx) {
    for (let n = this.args.from; n > 0; n--) { yield { left: n }; console.log("stored", n); }
  }
}
export default dag("a", {}, (d) => {
  d.task("wait", {}, async (ctx) => ctx.until("zero", new Countdown({ from: 2 })));
});`);
  under.run(1, "countdown", bundle, { from: 2 });
  expect(await under.event(1)).toEqual({ left: 2 });
  under.runner.ack(1);
  expect(await under.event(1, 2)).toEqual({ left: 1 });
  expect(under.logs(1)).toEqual(["stored 2"]);
});
