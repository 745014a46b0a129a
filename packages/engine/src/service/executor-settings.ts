/**
 * The setting `TRADEWIND_EXECUTORS`: further executors, by the names that tasks use, as one JSON object. It is one variable
 * and not a file, because it names the same things on every machine, like the other settings, and may hold a password.
 */
import { isAbsolute } from "node:path";
import type { Json } from "@tradewind/sdk/manifest";
import { nearest } from "@tradewind/sdk/wording";
import { namespaces } from "./kubernetes-settings.ts";
import { redisUrl as checkedRedisUrl, publicUrl, Unfit } from "./setting-values.ts";

/** An executor as the setting names it: what is missing has the default of its type. */
export type GivenExecutor =
  | { readonly type: "queue"; readonly redisUrl?: string; readonly parallelism?: number }
  | {
      readonly type: "kubernetes";
      readonly podTemplate?: string;
      readonly executionUrl?: string;
      /** The path of a kubeconfig. */
      readonly kubeconfig?: string;
      readonly namespaces?: readonly string[];
      readonly parallelism?: number;
    }
  | {
      readonly type: "module";
      /** The name of a package, or a path. */
      readonly module: string;
      readonly options: Json;
      readonly parallelism?: number;
    };

type Members = Readonly<Record<string, unknown>>;

const EXAMPLE = '{"gpu":{"type":"queue","redisUrl":"redis://gpu-site:6379"}}';
const NAME = /^[\w.-]{1,250}$/;
const RESERVED: Readonly<Record<string, string>> = {
  local:
    "it is always there, once per scheduler. Set its slots by TRADEWIND_PARALLELISM, and limit heavy tasks by a pool",
  default: "TRADEWIND_EXECUTOR names the executor of tasks that name none",
};
const MOST = 1_000_000;

/** Errors contain names and keys, but no value: it may hold a password. */
export function readExecutors(text: string): Readonly<Record<string, GivenExecutor>> {
  if (text.trim() === "") return {};
  return Object.fromEntries(
    Object.entries(objectOf(text)).map(([name, given]) => [name, executorOf(name, given)]),
  );
}

export function executorName(text: string): string {
  if (NAME.test(text)) return text;
  throw new Unfit(`is ${JSON.stringify(text)}: it must be the name of an executor, such as local or queue.`);
}

function objectOf(text: string): Members {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (isObject(value)) return value;
  throw new Unfit(`is not a JSON object of executors by name, such as ${EXAMPLE}.`);
}

function executorOf(name: string, given: unknown): GivenExecutor {
  const bad = (why: string) => new Unfit(`has an invalid executor "${name}": ${why}.`);
  const reserved = RESERVED[name];
  if (reserved !== undefined) throw bad(reserved);
  if (!NAME.test(name))
    throw bad("its name must have 1 to 250 letters, digits, dots, hyphens or underscores");
  if (!isObject(given)) throw bad(`it must be an object, as in ${EXAMPLE}`);
  const { module, type } = given;
  if (module !== undefined && type !== undefined) throw bad("give it a type or a module, not both");
  const read = module === undefined ? TYPES[String(type)] : ofModule;
  if (read !== undefined) return read(given, bad);
  const types = Object.keys(TYPES).map((known) => `"${known}"`);
  throw bad(`its type must be ${types.join(" or ")}; for any other executor give a "module"`);
}

/** What is wrong with the value of this executor. */
type Bad = (why: string) => Unfit;

const TYPES: Readonly<Record<string, (given: Members, bad: Bad) => GivenExecutor>> = {
  queue: (given, bad) => {
    refuseUnknown(given, ["type", "redisUrl", "parallelism"], bad);
    const { redisUrl } = given;
    return { type: "queue", ...limitOf(given, bad), ...(redisUrl !== undefined && addressOf(redisUrl, bad)) };
  },
  kubernetes: (given, bad) => {
    const keys = ["type", "podTemplate", "executionUrl", "kubeconfig", "namespace", "parallelism"];
    refuseUnknown(given, keys, bad);
    const text = <T>(key: string, read: (text: string) => T): T | undefined => {
      const value = given[key];
      if (value === undefined) return undefined;
      return checked(key, () => read(String(value)), bad);
    };
    const settings = {
      podTemplate: text("podTemplate", absolute),
      executionUrl: text("executionUrl", publicUrl),
      kubeconfig: text("kubeconfig", absolute),
      namespaces: text("namespace", namespaces),
    };
    return { type: "kubernetes", ...limitOf(given, bad), ...settings };
  },
};

function ofModule(given: Members, bad: Bad): GivenExecutor {
  refuseUnknown(given, ["module", "options", "parallelism"], bad);
  const { module, options = {} } = given;
  if (typeof module !== "string" || module === "" || module.includes("\0"))
    throw bad("module must be the name of a package or the path of a file");
  return { type: "module", module, options: options as Json, ...limitOf(given, bad) };
}

function limitOf({ parallelism }: Members, bad: Bad): { readonly parallelism?: number } {
  if (parallelism === undefined) return {};
  if (Number.isInteger(parallelism) && (parallelism as number) >= 1 && (parallelism as number) <= MOST)
    return { parallelism: parallelism as number };
  throw bad(`parallelism must be a whole number from 1 to ${MOST}`);
}

function addressOf(url: unknown, bad: Bad): { readonly redisUrl: string } {
  return { redisUrl: checked("redisUrl", () => checkedRedisUrl(String(url)), bad) };
}

function checked<T>(key: string, read: () => T, bad: Bad): T {
  try {
    return read();
  } catch (error) {
    throw bad(`${key} ${(error as Error).message.replace(/\.$/, "")}`);
  }
}

/** The setting is the same for processes with other working directories. */
function absolute(path: string): string {
  if (isAbsolute(path) && !path.includes("\0")) return path;
  throw new Unfit("must be the whole path of a file.");
}

function refuseUnknown(given: Members, known: readonly string[], bad: Bad): void {
  const name = Object.keys(given).find((key) => !known.includes(key));
  if (name === undefined) return;
  const near = nearest(name, known);
  throw bad(`unknown key "${name}"; ${near ? `did you mean "${near}"?` : `known: ${known.join(", ")}`}`);
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
