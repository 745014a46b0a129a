/** Opens a page in the user's browser, where there is one. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/** The command that opens an address; undefined: this machine shows nothing to the user. */
export function browserCommand(
  platform: NodeJS.Platform,
  env: NodeJS.ProcessEnv,
): readonly [string, ...string[]] | undefined {
  if (env.BROWSER) return [env.BROWSER];
  if (platform === "darwin") return env.SSH_CONNECTION ? undefined : ["open"];
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ["xdg-open"] : undefined;
}

/** Returns whether a program has taken the address. */
export async function openBrowser(url: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const command = browserCommand(process.platform, env);
  if (command === undefined) return false;
  const [program, ...args] = command;
  const child = spawn(program, [...args, url], { detached: true, env, stdio: "ignore" });
  child.unref();
  try {
    await once(child, "spawn");
    return true;
  } catch {
    return false;
  }
}
