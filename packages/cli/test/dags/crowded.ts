import { dag } from "tradewind";

/** Requests more slots than its pool has. */
export default dag("crowded", {}, (d) => {
  d.task("waits", { pool: "tiny", poolSlots: 2 }, () => "ran");
});
