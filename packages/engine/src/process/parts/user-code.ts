import type { Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import { refusedNames } from "../../service/user-environment.ts";
import { type AccountChoice, chooseUserCodeAccount } from "./user-code-account.ts";

/** Prepares user code before any runs: warnings, and the account. Returns the account: see `chooseUserCodeAccount`. */
export async function prepareUserCode(choice: AccountChoice): Promise<ProcessUser | null> {
  warnOfRefused(choice.logger);
  return await chooseUserCodeAccount(choice);
}

function warnOfRefused(logger: Logger): void {
  const variables = refusedNames(process.env);
  if (variables.length > 0)
    logger.warn("a pattern of TRADEWIND_TASK_ENV matches variables that are never passed to user code", {
      variables,
    });
}
