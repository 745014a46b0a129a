/** Remedies for errors whose own message has none. */
import { dirname, sep } from "node:path";
import { packageOf } from "./installed-package.ts";

interface Thrown {
  readonly message: string;
  readonly code: string | null;
}

/** The same error with a hint at the end of its message, if there is one. `bundle`: the path of the module that threw it. */
export function withHint<T extends Thrown>(error: T, bundle: string | null): T {
  const hint = hintFor(error, bundle);
  return hint === null ? error : { ...error, message: `${error.message}\n${hint}` };
}

export function hintFor(error: Thrown, bundle: string | null): string | null {
  return addonHint(error) ?? platformHint(error) ?? fileHint(error, bundle);
}

/** A path beside the module that the bundler could not determine. */
function fileHint({ code, message }: Thrown, bundle: string | null): string | null {
  if (code !== "ENOENT" || bundle === null) return null;
  const path = /'([^'\n]+)'/.exec(message)?.[1];
  if (path === undefined || !path.startsWith(`${dirname(bundle)}${sep}`)) return null;
  return `The DAG's bundle does not contain this file. Write its path as a text in the code, or its folder: new URL("./sql/", import.meta.url) or join(import.meta.dirname, "sql") adds all files of the folder sql`;
}

const ADDON_FAILED = /NODE_MODULE_VERSION|Could not locate the bindings file|No native build was found for/;
const ADDON_PATH = /(?:[A-Za-z]:)?[\\/][^'"\n]*?[\\/]node_modules[\\/][^'"\n]*?(?=['"\n:]|$)/;
const PLATFORM_PACKAGE = /Cannot find (?:module|package) '((?:@[^/']+\/)?[^/']+)[^']*\.node'/;

/** An addon that was built for another Node or another platform, or not at all. */
function addonHint({ code, message }: Thrown): string | null {
  if (code !== "ERR_DLOPEN_FAILED" && !ADDON_FAILED.test(message)) return null;
  const { folder, name } = packageOf(ADDON_PATH.exec(message)?.[0] ?? "") ?? {
    folder: null,
    name: "<package>",
  };
  const at =
    folder === null ? "" : `cd ${dirname(folder.slice(0, folder.lastIndexOf("node_modules") + 1))} && `;
  return `Build it for the Node that Tradewind runs on (${runtime()}), in the DAG's project: ${at}${withOwnNode(`npm rebuild ${name}`)}. If node_modules comes from another platform, delete it and install again: ${withOwnNode("npm install")}`;
}

/** npm installs one package per platform, and omits the others. */
function platformHint({ message }: Thrown): string | null {
  const name = PLATFORM_PACKAGE.exec(message)?.[1];
  if (name === undefined) return null;
  return `"${name}" holds the native code for this platform (${runtime()}) and is not installed. Run npm install in the DAG's project on this machine, without --omit=optional`;
}

function runtime(): string {
  return `${process.version}, ${process.platform} ${process.arch}`;
}

/** npm builds for the Node that it runs on itself, which is the first one of the PATH. */
function withOwnNode(command: string): string {
  const folder = dirname(process.execPath);
  return process.platform === "win32"
    ? `set "PATH=${folder};%PATH%" && ${command}`
    : `PATH="${folder}:$PATH" ${command}`;
}
