/** Does not load: its import does not exist. */
import { dag } from "tradewind";
// @ts-expect-error: the file of the example is missing
import { vatTable } from "./common/tax.ts";

export default dag("vat_report", (d) => {
  d.task("report", () => vatTable);
});
