import { dag } from "tradewind";

throw new Error("this file does not load");

export default dag("broken", {}, () => {});
