import { dag } from "tradewind";

dag("forgotten", {}, (d) => {
  d.task("never", () => "loaded");
});
