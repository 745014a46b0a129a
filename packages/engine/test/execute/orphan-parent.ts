/** A process with its own executor, for tests that kill it: runs the task named in its arguments. */
import { silentLogger } from "../../src/service/logger.ts";
import { ExecutorUnderTest } from "./executor-under-test.ts";

const [taskId, file] = process.argv.slice(2);
const under = await ExecutorUnderTest.start({ logger: silentLogger });
under.submit(taskId!, { conf: { file: file! } });
