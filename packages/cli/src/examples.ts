/**
 * The examples section of `--help`: `.addHelpText("after", examples("tradewind runs list etl"))`. Each line is a complete
 * command; a line that begins with `#` explains the next one.
 */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => (line.startsWith("#") ? `  ${line}` : `  $ ${line}`)).join("\n")}`;
}
