/** An e-mail as it goes over the wire: headers (RFC 5322, RFC 2047) and a plain text of UTF-8 in base64. */

export interface MailMessage {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly date: Date;
  /** Between the angle brackets: the same for every attempt, so that mail programs show one of several. */
  readonly messageId: string;
}

const CRLF = "\r\n";
/** Of an encoded word, 75 characters at most; so much is left for its base64. */
const WORD_BYTES = 45;
const BODY_LINE = 76;

/** All lines end with CRLF. Nothing of it can be taken for the end of the message, and no value can add a header. */
export function mailText(message: MailMessage): string {
  const headers: readonly (readonly [string, string])[] = [
    ["From", mailbox(message.from)],
    ["To", message.to.map(mailbox).join(`,${CRLF} `)],
    ["Subject", headerText(message.subject)],
    ["Date", mailDate(message.date)],
    ["Message-ID", `<${message.messageId}>`],
    ["MIME-Version", "1.0"],
    ["Content-Type", "text/plain; charset=utf-8"],
    ["Content-Transfer-Encoding", "base64"],
    // Not to be answered by those who are on holiday.
    ["Auto-Submitted", "auto-generated"],
  ];
  const body = Buffer.from(message.text.replaceAll(/\r?\n/g, CRLF)).toString("base64");
  const lines = body.match(new RegExp(`.{1,${BODY_LINE}}`, "g")) ?? [];
  return [...headers.map(([name, value]) => `${name}: ${value}`), "", ...lines, ""].join(CRLF);
}

/** Plain where it can be; otherwise encoded words, each a whole number of characters, folded. */
function headerText(text: string, as: "text" | "word" = "text"): string {
  const line = text.replaceAll(/\p{Cc}+/gu, " ");
  const isPlain = as === "text" && /^[\x20-\x7e]*$/.test(line) && line.length <= 60 && !line.includes("=?");
  if (isPlain) return line;
  const words: string[] = [];
  let word = "";
  for (const character of line) {
    if (Buffer.byteLength(word + character) > WORD_BYTES) {
      words.push(word);
      word = "";
    }
    word += character;
  }
  if (word !== "") words.push(word);
  return words.map((each) => `=?UTF-8?B?${Buffer.from(each).toString("base64")}?=`).join(`${CRLF} `);
}

/** Of "Ops <ops@example.com>" the part that the protocol takes. */
export function addressIn(mailbox: string): string {
  return /<([^<>]*)>\s*$/.exec(mailbox)?.[1] ?? mailbox.trim();
}

/** A name before the address is text as any other. */
function mailbox(given: string): string {
  const [, name] = /^(.*\S)\s*<[^<>]*>\s*$/.exec(given) ?? [];
  if (name === undefined) return addressIn(given);
  const isPlain = /^[\w !#$%&'*+/=?^`{|}~-]*$/.test(name) && !name.includes("=?");
  const bare = name.replace(/^"(.*)"$/, "$1");
  return `${isPlain ? name : headerText(bare, "word")} <${addressIn(given)}>`;
}

/** As RFC 5322 has it: "Mon, 16 Nov 2026 09:15:14 +0000". */
function mailDate(date: Date): string {
  return date.toUTCString().replace("GMT", "+0000");
}
