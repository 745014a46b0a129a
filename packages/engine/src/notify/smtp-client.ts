/**
 * Sends one e-mail through an SMTP server (RFC 5321): greeting, EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA. One command at a
 * time, each reply awaited; the whole conversation has one time limit.
 *
 * It counts as sent when the server has accepted the message after DATA. If the answer to that is lost, the message may
 * have been sent, and is sent again: at least once.
 */

import { connect, type Socket } from "node:net";
import { hostname } from "node:os";
import { connect as connectTls } from "node:tls";
import { EngineError, messageOf } from "../service/errors.ts";
import { addressIn, type MailMessage, mailText } from "./mail-message.ts";
import { SmtpReplies, type SmtpReply } from "./smtp-replies.ts";

export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /**
   * "implicit": TLS from the first byte. "starttls": required. "opportunistic": if the server offers it. "none": never.
   * Credentials are sent in plain text only with "none".
   */
  readonly tls: "implicit" | "starttls" | "opportunistic" | "none";
  readonly credentials: { readonly user: string; readonly password: string } | null;
  /** Accepts an untrusted certificate. */
  readonly allowsAnyCertificate?: boolean;
}

/** Rejects with `NOTICE_MAIL`: the server, the failed step, and the answer. */
export async function sendMail(server: SmtpServer, message: MailMessage, signal: AbortSignal): Promise<void> {
  const talk = new Conversation(server);
  const give = () => talk.destroy(new Error("it took too long"));
  signal.addEventListener("abort", give, { once: true });
  try {
    signal.throwIfAborted();
    await converse(talk, server, message);
  } catch (error) {
    const what = `The SMTP server ${server.host}:${server.port} did not take the message: ${messageOf(error)}`;
    throw new EngineError("NOTICE_MAIL", what, { cause: error });
  } finally {
    signal.removeEventListener("abort", give);
    talk.destroy();
  }
}

async function converse(talk: Conversation, server: SmtpServer, message: MailMessage): Promise<void> {
  await talk.open();
  let extensions = await greet(talk);
  const offersTls = extensions.some((line) => /^STARTTLS$/i.test(line));
  if (server.tls === "starttls" && !offersTls) throw new Error("it does not offer STARTTLS");
  if (offersTls && (server.tls === "starttls" || server.tls === "opportunistic")) {
    await talk.command("STARTTLS", [220]);
    await talk.secure();
    // Earlier answers were not protected, and are discarded.
    extensions = await greet(talk);
  }
  if (server.credentials !== null) await authenticate(talk, server, extensions);
  const isSevenBit = !extensions.some((line) => /^SMTPUTF8$/i.test(line));
  for (const address of [message.from, ...message.to]) {
    const envelope = addressIn(address);
    if (!isMailbox(envelope)) throw new Error(`"${envelope}" is not an address`);
    if (isSevenBit && !/^[\x21-\x7e]+$/.test(envelope))
      throw new Error(`it does not take addresses beyond ASCII: "${envelope}"`);
  }
  const isUtf8 = [message.from, ...message.to].some((each) => !/^[\x21-\x7e]*$/.test(addressIn(each)));
  await talk.command(`MAIL FROM:<${addressIn(message.from)}>${isUtf8 ? " SMTPUTF8" : ""}`, [250]);
  for (const to of message.to) await talk.command(`RCPT TO:<${addressIn(to)}>`, [250, 251]);
  await talk.command("DATA", [354]);
  await talk.command(`${dotted(mailText(message))}.`, [250]);
  // The server has the message: the result of QUIT does not matter.
  await talk.command("QUIT", [221]).catch(() => {});
}

/** The extensions of the server; none if it does not support EHLO. */
async function greet(talk: Conversation): Promise<readonly string[]> {
  const reply = await talk.send(`EHLO ${ownName()}`);
  if (reply.code === 250) return reply.lines.slice(1).map((line) => line.trim());
  if (reply.code < 500) throw refusal("EHLO", reply);
  await talk.command(`HELO ${ownName()}`, [250]);
  return [];
}

async function authenticate(
  talk: Conversation,
  server: SmtpServer,
  extensions: readonly string[],
): Promise<void> {
  const { credentials } = server;
  if (credentials === null) return;
  if (!talk.isSecure && server.tls !== "none")
    throw new Error("the connection is not encrypted; its credentials are not sent");
  const offered = extensions
    .filter((line) => /^AUTH[ =]/i.test(line))
    .flatMap((line) => line.slice(5).toUpperCase().split(/\s+/));
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const { password, user } = credentials;
  if (offered.includes("PLAIN")) {
    await talk.command(`AUTH PLAIN ${base64(`\0${user}\0${password}`)}`, [235], "AUTH PLAIN");
  } else if (offered.includes("LOGIN")) {
    await talk.command("AUTH LOGIN", [334]);
    await talk.command(base64(user), [334], "AUTH LOGIN");
    await talk.command(base64(password), [235], "AUTH LOGIN");
  } else {
    throw new Error("it offers neither AUTH PLAIN nor AUTH LOGIN");
  }
}

/** Escapes leading dots: a line with a single dot would end the message. */
function dotted(text: string): string {
  return text.replaceAll(/^\./gm, "..");
}

/** True if the address cannot end the command or its angle brackets. */
function isMailbox(address: string): boolean {
  return /^[^\s<>\p{Cc}]+@[^\s<>\p{Cc}]+$/u.test(address);
}

/** A host name, or an address literal, for EHLO. */
function ownName(): string {
  const name = hostname();
  return /^[a-zA-Z0-9.-]+$/.test(name) ? name : "[127.0.0.1]";
}

/** One socket: commands and replies in turn. */
class Conversation {
  readonly #server: SmtpServer;
  #socket: Socket | null = null;
  #replies = new SmtpReplies();
  /** Replies that were read and not yet awaited. */
  #unread: SmtpReply[] = [];
  #waiting: PromiseWithResolvers<SmtpReply> | null = null;
  #failure: Error | null = null;
  isSecure = false;

  constructor(server: SmtpServer) {
    this.#server = server;
  }

  async open(): Promise<void> {
    const { host, port, tls } = this.#server;
    if (this.#failure !== null) throw this.#failure;
    const socket =
      tls === "implicit" ? connectTls(this.#tlsOptions({ host, port })) : connect({ host, port });
    this.isSecure = tls === "implicit";
    this.#attach(socket);
    const greeting = await this.#next();
    if (greeting.code !== 220) throw refusal("the connection", greeting);
  }

  /** Encrypts the connection. A reply that arrived before that was injected. */
  async secure(): Promise<void> {
    const plain = this.#socket;
    if (plain === null || this.#unread.length > 0) throw new Error("it sent a reply before the command");
    plain.removeAllListeners();
    this.#replies = new SmtpReplies();
    const socket = connectTls(this.#tlsOptions({ socket: plain }));
    const ready = Promise.withResolvers<void>();
    socket.once("secureConnect", ready.resolve).once("error", ready.reject);
    // The caller's abort destroys the socket: then neither event fires.
    socket.once("close", () => ready.reject(this.#failure ?? new Error("it closed the connection")));
    this.#socket = socket;
    await ready.promise;
    this.#attach(socket);
    this.isSecure = true;
  }

  /** A reply with one of these codes, or an error that names the command. */
  async command(command: string, codes: readonly number[], name = command): Promise<SmtpReply> {
    const reply = await this.send(command);
    if (codes.includes(reply.code)) return reply;
    throw refusal(name.includes("\n") ? "the message" : name, reply);
  }

  async send(command: string): Promise<SmtpReply> {
    this.#socket?.write(`${command}\r\n`);
    return this.#next();
  }

  destroy(failure: Error | null = null): void {
    this.#fail(failure ?? new Error("the connection was closed"));
    this.#socket?.on("error", () => {});
    this.#socket?.destroy();
  }

  #tlsOptions<T extends object>(target: T) {
    const { allowsAnyCertificate, host } = this.#server;
    // The name to verify in the certificate; an IP address has none.
    const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
    return { ...target, ...servername, rejectUnauthorized: allowsAnyCertificate !== true };
  }

  #attach(socket: Socket): void {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("it closed the connection")));
  }

  #receive(chunk: string): void {
    try {
      for (const reply of this.#replies.read(chunk)) {
        const waiting = this.#waiting;
        this.#waiting = null;
        if (waiting === null) this.#unread.push(reply);
        else waiting.resolve(reply);
      }
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#waiting?.reject(this.#failure);
    this.#waiting = null;
  }

  async #next(): Promise<SmtpReply> {
    const ready = this.#unread.shift();
    if (ready !== undefined) return ready;
    if (this.#failure !== null) throw this.#failure;
    this.#waiting = Promise.withResolvers<SmtpReply>();
    return this.#waiting.promise;
  }
}

function refusal(what: string, { code, lines }: SmtpReply): Error {
  return new Error(`it answered ${code} ${lines.join(" ").slice(0, 200)} to ${what}`);
}
