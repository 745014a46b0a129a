import { spawnSync } from "node:child_process";
import { USER_CODE_UID } from "../../src/service/process-user.ts";

/**
 * Whether these tests can run user code under an account of its own. Not as an ordinary user, and not in a folder that only
 * root can read, such as one of `mktemp -d`.
 */
export const hasOtherAccount =
  process.getuid?.() === 0 &&
  spawnSync(process.execPath, ["--check", import.meta.filename], { uid: USER_CODE_UID, gid: USER_CODE_UID })
    .status === 0;
