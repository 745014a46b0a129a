/**
 * Checks the options of `runDag` before anything runs: an ignored typo would make the test check another run than the
 * intended one.
 */
import { nearest } from "@tradewind/sdk/wording";
import { DagTestError } from "./errors.ts";
import type { GivenCommand, GivenSignal, RunOptions } from "./options.ts";

type Names<T> = Readonly<Record<keyof T, true>>;

const OPTIONS: Names<RunOptions> = {
  clock: true,
  concurrency: true,
  conf: true,
  connections: true,
  dataInterval: true,
  logicalDate: true,
  now: true,
  onEvent: true,
  commands: true,
  settle: true,
  signals: true,
  triggers: true,
  approvals: true,
  until: true,
  variables: true,
};
const SIGNAL: Names<GivenSignal> = { after: true, at: true, key: true, namespace: true, value: true };
const COMMAND: Names<GivenCommand> = { action: true, after: true, at: true, by: true, task: true };

const MAX_LENGTH = 250;

/** @throws DagTestError that names the first invalid option. */
export function checkOptions(options: RunOptions): void {
  checkNames(options, OPTIONS, "runDag");
  list(options.signals, "signals").forEach((signal, index) => {
    checkSignal(signal, `signals[${index}]`);
  });
  list(options.commands, "commands").forEach((order, index) => {
    checkNames(order, COMMAND, `commands[${index}]`, '{ task: "train", action: "start" }');
  });
}

function checkSignal(signal: unknown, where: string): void {
  checkNames(signal, SIGNAL, where, '{ key: "order.paid", value: 7 }');
  const { key, namespace = "default" } = signal as { key?: unknown; namespace?: unknown };
  for (const [name, value] of [
    ["key", key],
    ["namespace", namespace],
  ] as const) {
    const isText = typeof value === "string" && value.length >= 1 && value.length <= MAX_LENGTH;
    if (!isText || /\p{Cc}/u.test(value))
      throw bad(`${where}.${name} has 1 to ${MAX_LENGTH} characters, got ${show(value)}`);
    if (value.includes("*"))
      throw bad(`${where}.${name} ${show(value)} stands for many signals: "*" can be listened to, not sent`);
  }
}

function checkNames(value: unknown, names: Readonly<Record<string, true>>, where: string, like = ""): void {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad(
      `${where} must be an object${like === "" ? " of options" : ` like ${like}`}, got ${show(value)}`,
    );
  const known = Object.keys(names);
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    const remedy = near === undefined ? `known options: ${known.join(", ")}` : `did you mean "${near}"?`;
    throw bad(`${where}: unknown option "${name}"`, remedy);
  }
}

function list(value: unknown, name: string): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw bad(`${name} must be a list, got ${show(value)}`);
}

function show(value: unknown): string {
  return typeof value === "function" ? "a function" : (JSON.stringify(value) ?? String(value)).slice(0, 80);
}

function bad(problem: string, remedy?: string): DagTestError {
  return new DagTestError("TW_TEST_BAD_OPTION", problem, remedy);
}
