/** Parses a partial command line: the command reached so far, and the word at the cursor. */
import type { Argument, CommandUnknownOpts, Option } from "@commander-js/extra-typings";

export interface TypedLine {
  readonly command: CommandUnknownOpts;
  /** Without `tradewind`: `["dags", "show"]`. */
  readonly path: readonly string[];
  /** By argument name, as in help texts. */
  readonly positionals: Readonly<Record<string, string>>;
  /** By long name. */
  readonly options: Readonly<Record<string, string>>;
  /** The part of the word at the cursor that is a name or value: `fa` in `--state=fa`. */
  readonly current: string;
  /** The part of the same word before it. */
  readonly before: string;
  readonly expects:
    | { readonly kind: "command" | "option" | "nothing" }
    | { readonly kind: "value"; readonly of: Option | Argument };
}

/** Splits a line up to the cursor into words as a shell does, without quotes; the last word is at the cursor. */
export function splitLine(line: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const letter = line[at] as string;
    if (letter === "\\" && quote !== "'") word = (word ?? "") + (line[++at] ?? "");
    else if (quote !== "") {
      if (letter === quote) quote = "";
      else word += letter;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word ??= "";
    } else if (/\s/.test(letter)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + letter;
  }
  return [...words, word ?? ""];
}

/** @param words Without `tradewind`; the last one is at the cursor. */
export function readTyped(root: CommandUnknownOpts, words: readonly string[]): TypedLine {
  let command = root;
  const path: string[] = [];
  const given: string[] = [];
  const options: Record<string, string> = {};
  let open: Option | undefined;
  let isLiteral = false;
  const known = (name: string) => findOption([command, root], name);
  for (const word of words.slice(0, -1)) {
    if (!isLiteral && word === "--") {
      isLiteral = true;
      open = undefined;
    } else if (!isLiteral && word.startsWith("-")) {
      const [name = "", value] = splitOption(word);
      const option = known(name);
      if (option?.long && value !== undefined) options[option.long] = value;
      open = value === undefined && takesValue(option) ? option : undefined;
    } else if (open !== undefined) {
      options[open.long ?? ""] = word;
      if (!open.variadic) open = undefined;
    } else {
      const next = command.commands.find((each) => each.name() === word);
      if (next === undefined) given.push(word);
      else {
        command = next;
        path.push(word);
      }
    }
  }
  const last = words.at(-1) ?? "";
  const positionals = Object.fromEntries(
    given.map((word, at) => [argumentAt(command, at)?.name() ?? String(at), word]),
  );
  const line = { command, path, positionals, options, current: last, before: "" };
  if (!isLiteral && last.startsWith("-")) {
    const [name = "", value] = splitOption(last);
    const option = known(name);
    if (value === undefined) return { ...line, expects: { kind: "option" } };
    if (!takesValue(option)) return { ...line, expects: { kind: "nothing" } };
    return { ...line, current: value, before: `${name}=`, expects: { kind: "value", of: option } };
  }
  if (open !== undefined) return { ...line, expects: { kind: "value", of: open } };
  if (command.commands.length > 0) return { ...line, expects: { kind: "command" } };
  const argument = argumentAt(command, given.length);
  return { ...line, expects: argument ? { kind: "value", of: argument } : { kind: "nothing" } };
}

function argumentAt({ registeredArguments: all }: CommandUnknownOpts, at: number): Argument | undefined {
  const last = all.at(-1);
  return all[at] ?? (last?.variadic ? last : undefined);
}

function takesValue(option: Option | undefined): option is Option {
  return option !== undefined && (option.required || option.optional);
}

function findOption(commands: readonly CommandUnknownOpts[], name: string): Option | undefined {
  return commands
    .flatMap((command) => command.options)
    .find((option) => option.long === name || option.short === name);
}

/** Splits `--state=failed`, but not at a `=` inside a value. */
function splitOption(word: string): [string | undefined, string | undefined] {
  const equals = word.startsWith("--") ? word.indexOf("=") : -1;
  return equals < 0 ? [word, undefined] : [word.slice(0, equals), word.slice(equals + 1)];
}
