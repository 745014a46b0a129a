/**
 * `npm run test:storm`: the long form of the storm of remote execution, with at least 5,000 attempts. TRADEWIND_FAULT_SCALE
 * sets how often each fault is dealt.
 */
import { mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

process.env.TRADEWIND_FAULT_SCALE ??= "10";

const storm = mergeConfig(base, { test: { retry: 0 } });
storm.test.include = ["packages/engine/test/fault/remote/{bounds,storm}.test.ts"];
export default storm;
