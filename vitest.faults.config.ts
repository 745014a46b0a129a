/** `npm run test:faults`: the fault suite alone, against the PostgreSQL that DATABASE_URL names, if it is set. */
import { mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

process.env.TRADEWIND_TEST_SERVER = process.env.DATABASE_URL ?? "";
// Tests that start a process name its database themselves.
delete process.env.DATABASE_URL;

const faults = mergeConfig(base, { test: {} });
faults.test.include = ["packages/engine/test/fault/**/*.test.ts"];
export default faults;
