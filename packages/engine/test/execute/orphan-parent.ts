/** A process with an executor of its own, to be killed: runs the task named in its arguments until then. */
import { silentLogger } from "../../src/service/logger.ts";
import { ExecutorUnderTest } from "./executor-under-test.ts";

const [taskId, file] = process.argv.slice(2);
const under = await ExecutorUnderTest.start({ logger: silentLogger });
under.submit(taskId!, { conf: { file: file! } });
