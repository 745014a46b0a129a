import { type CallbackContext, dag, sendSignal, signal, webhook } from "tradewind";

const onFailure = ({ log, run }: CallbackContext) => log.warn("the run has failed", { run: run.id });

/** Fails in the middle: later tasks never run. */
export default dag("failing", { onFailure: [onFailure, webhook("pager")] }, (d) => {
  const first = d.task("first", () => 1);
  const told = sendSignal(signal("broken"));
  const broken = d.task("broken", { after: first, onFailure: told }, (): number => {
    throw new Error("the disk is full");
  });
  d.task("never", { inputs: { broken } }, ({ broken }) => broken);
});
