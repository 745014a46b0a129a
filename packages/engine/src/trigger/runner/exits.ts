/**
 * The ways in which code can end the process on purpose. Within a trigger each of them ends that trigger: the call
 * throws, because it must not return, and the process continues with the others.
 */
import { currentScope, type Scope } from "./scope.ts";

/** @returns Node's own exit, for this process itself. */
export function guardExits(blame: (scope: Scope, error: Error) => void): (code: number) => never {
  const { exit, kill } = process;
  const refuse = (what: string): void => {
    const scope = currentScope();
    if (scope === null) return;
    const message = `The trigger called ${what}, which would have ended all triggers of this process; return instead.`;
    const error = Object.assign(new Error(message), { code: "TRIGGER_CRASHED" });
    blame(scope, error);
    throw error;
  };
  const guarded = {
    exit: (code?: number | string | null) => {
      refuse(`process.exit(${code ?? ""})`);
      return exit.call(process, code);
    },
    abort: () => {
      refuse("process.abort()");
      return abort.call(process);
    },
    kill: (pid: number, signal?: string | number) => {
      const isOwn = pid === process.pid || pid === 0 || pid === -process.pid;
      if (isOwn && signal !== 0) refuse(`process.kill(${pid})`);
      return kill.call(process, pid, signal);
    },
  };
  const { abort } = process;
  Object.assign(process, guarded);
  return (code) => exit.call(process, code);
}
