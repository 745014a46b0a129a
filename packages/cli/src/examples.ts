/**
 * Examples below a command's options in `--help`: `.addHelpText("after", examples("tradewind runs list etl"))`. Each is
 * a whole command line; a line that begins with `#` explains the next one.
 */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => (line.startsWith("#") ? `  ${line}` : `  $ ${line}`)).join("\n")}`;
}
