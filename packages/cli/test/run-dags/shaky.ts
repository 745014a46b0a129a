import { type CallbackContext, dag, deadline } from "tradewind";
import { divide } from "./lib/divide.ts";

const onFailure = ({ log }: CallbackContext) => log.warn("callback called");
const late = deadline({ after: "start", within: "1ms" });

/** Fails in its second task unless the conf prevents it. */
export default dag("shaky", { onFailure, deadline: late }, (d) => {
  const items = d.task("items", (_, ctx) => {
    ctx.log.info("lists items");
    return ["a", "b"];
  });
  const each = d.map("each", { over: items }, (item) => {
    console.log(`item ${item}`);
    return item;
  });
  const broken = d.task("broken", { after: each }, (_, ctx) => {
    if (ctx.params.works === true) return 1;
    try {
      return divide(1, 0);
    } catch (error) {
      console.error(error);
      throw new Error("cannot divide", { cause: error });
    }
  });
  d.task("never", { after: broken }, () => "ran");
  d.task("silent", { after: items }, () => null);
});
