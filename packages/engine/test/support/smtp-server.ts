/** A small, strict SMTP server for tests. It keeps every accepted message. */

import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket } from "node:tls";
import type { TestCertificate } from "./certificates.ts";

export interface TakenMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Without dot-stuffing; lines end with "\n". */
  readonly text: string;
  readonly isSecure: boolean;
  readonly user: string | null;
}

export interface SmtpServerOptions {
  readonly certificate?: TestCertificate;
  readonly tls?: "implicit" | "starttls";
  readonly auth?: readonly ("PLAIN" | "LOGIN")[];
  readonly users?: Readonly<Record<string, string>>;
  readonly knowsEhlo?: boolean;
  /** Overrides the response to a command. */
  readonly answer?: (command: string) => string | null | undefined;
  /** Sent in clear text after STARTTLS was accepted, like an attacker would. */
  readonly smuggle?: string;
}

export class SmtpTestServer {
  readonly mails: TakenMail[] = [];
  /** Every received line, including messages and secrets. */
  readonly lines: string[] = [];
  readonly options: SmtpServerOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port = 0;

  constructor(options: SmtpServerOptions = {}) {
    this.options = options;
  }

  get port(): number {
    return this.#port;
  }

  /** On the same port as before, if there was one. */
  async open(): Promise<this> {
    const { certificate, tls } = this.options;
    const serve = (socket: Socket) => new Session(this, socket).begin();
    const server =
      tls === "implicit"
        ? createTlsServer({ cert: certificate?.cert, key: certificate?.key }, serve)
        : createServer(serve);
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket)).on("error", () => {});
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server?.close(() => resolve()) ?? resolve());
  }
}

class Session {
  readonly #server: SmtpTestServer;
  #socket: Socket;
  #rest = "";
  #isSecure: boolean;
  #user: string | null = null;
  #from: string | null = null;
  #to: string[] = [];
  /** Handles the next line if it is not a command. */
  #next: ((line: string) => void) | null = null;

  constructor(server: SmtpTestServer, socket: Socket) {
    this.#server = server;
    this.#socket = socket;
    this.#isSecure = server.options.tls === "implicit";
  }

  begin(): void {
    this.#listen();
    this.#send("220 test ready");
  }

  #listen(): void {
    this.#socket.setEncoding("utf8");
    this.#socket.on("error", () => {});
    this.#socket.on("data", (chunk: string) => {
      this.#rest += chunk;
      for (let at = this.#rest.indexOf("\r\n"); at >= 0; at = this.#rest.indexOf("\r\n")) {
        const line = this.#rest.slice(0, at);
        this.#rest = this.#rest.slice(at + 2);
        this.#server.lines.push(line);
        const { answer } = this.#server.options;
        const instead = this.#next === null ? answer?.(line) : undefined;
        if (instead === null) this.#socket.destroy();
        else if (instead !== undefined) this.#send(instead);
        else if (this.#next !== null) this.#next(line);
        else this.#answer(this.#command(line));
      }
    });
  }

  #answer(text: string | null): void {
    if (text !== null) this.#send(text);
  }

  #send(text: string): void {
    this.#socket.write(`${text}\r\n`);
  }

  /** The response; null: already sent. */
  #command(line: string): string | null {
    const { knowsEhlo = true } = this.#server.options;
    const [verb = "", ...words] = line.split(" ");
    switch (verb.toUpperCase()) {
      case "EHLO":
        return knowsEhlo ? this.#offers() : "502 what is that";
      case "HELO":
        return "250 test";
      case "STARTTLS":
        this.#secure();
        return null;
      case "AUTH":
        return this.#authenticate(words);
      case "MAIL":
        this.#from = /^FROM:<([^>]*)>/.exec(words.join(" "))?.[1] ?? null;
        return this.#from === null ? "501 whose" : "250 ok";
      case "RCPT": {
        const to = /^TO:<([^>]*)>/.exec(words.join(" "))?.[1];
        if (to === undefined || this.#from === null) return "503 not now";
        this.#to.push(to);
        return "250 ok";
      }
      case "DATA":
        if (this.#to.length === 0) return "503 to whom";
        this.#receive();
        return "354 end with a dot";
      case "QUIT":
        this.#send("221 bye");
        this.#socket.end();
        return null;
      default:
        return "500 what";
    }
  }

  #offers(): string {
    const { auth = [], tls } = this.#server.options;
    const offers = [
      "test greets you",
      "8BITMIME",
      ...(tls === "starttls" && !this.#isSecure ? ["STARTTLS"] : []),
      ...(auth.length > 0 ? [`AUTH ${auth.join(" ")}`] : []),
    ];
    return offers.map((offer, at) => `250${at < offers.length - 1 ? "-" : " "}${offer}`).join("\r\n");
  }

  #secure(): void {
    const { certificate, smuggle } = this.#server.options;
    this.#send(smuggle === undefined ? "220 go ahead" : `220 go ahead\r\n${smuggle}`);
    this.#socket.removeAllListeners("data");
    this.#socket = new TLSSocket(this.#socket, {
      isServer: true,
      cert: certificate?.cert,
      key: certificate?.key,
    });
    this.#rest = "";
    this.#isSecure = true;
    this.#listen();
  }

  #receive(): void {
    const taken: string[] = [];
    this.#next = (line) => {
      if (line !== ".") {
        taken.push(line.startsWith(".") ? line.slice(1) : line);
        return;
      }
      this.#next = null;
      this.#server.mails.push({
        from: this.#from ?? "",
        to: this.#to,
        text: taken.join("\n"),
        isSecure: this.#isSecure,
        user: this.#user,
      });
      this.#send("250 taken");
    };
  }

  #authenticate([method, initial]: string[]): string {
    const plain = (text: string) => Buffer.from(text, "base64").toString();
    const check = (user: string, password: string) => {
      if (this.#server.options.users?.[user] !== password) return "535 no";
      this.#user = user;
      return "235 welcome";
    };
    if (method === "PLAIN" && initial !== undefined) {
      const [, user = "", password = ""] = plain(initial).split("\0");
      return check(user, password);
    }
    if (method !== "LOGIN") return "504 not like that";
    this.#next = (user) => {
      this.#send("334 UGFzc3dvcmQ6");
      this.#next = (password) => {
        this.#next = null;
        this.#send(check(plain(user), plain(password)));
      };
    };
    return "334 VXNlcm5hbWU6";
  }
}
