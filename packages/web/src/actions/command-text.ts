/** Texts for a terminal. Pure. */

export interface Request {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** Below the address of the server, with its parameters filled in: "/api/v2/pools/gpu". */
  readonly path: string;
  readonly body?: unknown;
}

/** An argument for a POSIX shell: quoted only if it has to be. */
function shellQuote(text: string): string {
  return /^[\w@%+=:,./~-]+$/.test(text) && !text.startsWith("~")
    ? text
    : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A command line of words; undefined words are left out. */
export function commandOf(...words: readonly (string | number | false | undefined)[]): string {
  return words
    .filter((word) => word !== undefined && word !== false)
    .map((word) => shellQuote(String(word)))
    .join(" ");
}

/** The token is a variable of the shell, so that the text can be shared. */
export function curlOf({ method, path, body }: Request, server: string): string {
  const lines = [
    `curl -X ${method} ${shellQuote(`${server}${path}`)}`,
    `-H "Authorization: Bearer $TRADEWIND_TOKEN"`,
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${shellQuote(JSON.stringify(body))}`]),
  ];
  return lines.join(" \\\n  ");
}
