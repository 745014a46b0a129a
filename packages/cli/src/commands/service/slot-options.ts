/** Options of the commands that run tasks. */
import { Option } from "@commander-js/extra-typings";
import { wholeNumber } from "../../input/values.ts";

export const PARALLELISM = new Option(
  "--parallelism <n>",
  "maximum number of concurrent tasks; 0 = no limit, new process per task",
).argParser(wholeNumber(0));

export const STREAMING_SLOTS = new Option(
  "--streaming-slots <n>",
  "additional slots for streaming tasks only (TRADEWIND_STREAMING_SLOTS; default: 0)",
).argParser(wholeNumber(0));
