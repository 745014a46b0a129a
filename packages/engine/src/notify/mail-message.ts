/** An e-mail in its wire format: headers (RFC 5322, RFC 2047) and a plain text of UTF-8 in base64. */

export interface MailMessage {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly date: Date;
  /** Without angle brackets: the same for every attempt, so that mail programs show one of several. */
  readonly messageId: string;
}

const CRLF = "\r\n";
/** An encoded word has at most 75 characters; this is what remains for its base64. */
const WORD_BYTES = 45;
const BODY_LINE = 76;

/** All lines end with CRLF. No content can end the message early, and no value can add a header. */
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
    // Prevents automatic replies.
    ["Auto-Submitted", "auto-generated"],
  ];
  const body = Buffer.from(message.text.replaceAll(/\r?\n/g, CRLF)).toString("base64");
  const lines = body.match(new RegExp(`.{1,${BODY_LINE}}`, "g")) ?? [];
  return [...headers.map(([name, value]) => `${name}: ${value}`), "", ...lines, ""].join(CRLF);
}

/** Plain if possible; otherwise encoded words, each with whole characters, folded. */
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

/** The address of "Ops <ops@example.com>". */
export function addressIn(mailbox: string): string {
  return /<([^<>]*)>\s*$/.exec(mailbox)?.[1] ?? mailbox.trim();
}

/** A name before the address is encoded like any other text. */
function mailbox(given: string): string {
  const [, name] = /^(.*\S)\s*<[^<>]*>\s*$/.exec(given) ?? [];
  if (name === undefined) return addressIn(given);
  const isPlain = /^[\w !#$%&'*+/=?^`{|}~-]*$/.test(name) && !name.includes("=?");
  const bare = name.replace(/^"(.*)"$/, "$1");
  return `${isPlain ? name : headerText(bare, "word")} <${addressIn(given)}>`;
}

/** The format of RFC 5322: "Mon, 16 Nov 2026 09:15:14 +0000". */
function mailDate(date: Date): string {
  return date.toUTCString().replace("GMT", "+0000");
}
