import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { certificate } from "../../test/support/certificates.ts";
import { type SmtpServerOptions, SmtpTestServer } from "../../test/support/smtp-server.ts";
import type { MailMessage } from "./mail-message.ts";
import { type SmtpServer, sendMail } from "./smtp-client.ts";

const MESSAGE: MailMessage = {
  from: "Tradewind <tradewind@example.com>",
  to: ["ops@example.com", "boss@example.com"],
  subject: "Deadline missed: DAG “früh”",
  text: "first line\n.second begins with a dot\n.\nlast — line",
  date: new Date("2026-11-16T09:15:14Z"),
  messageId: "deadline-7@example.com",
};
const CERTIFICATE = certificate("smtp test");

async function open(options: SmtpServerOptions = {}): Promise<SmtpTestServer> {
  const server = await new SmtpTestServer(options).open();
  onTestFinished(() => server.close());
  return server;
}

function send(server: { port: number }, how: Partial<SmtpServer> = {}, message = MESSAGE): Promise<void> {
  const target: SmtpServer = {
    host: "127.0.0.1",
    port: server.port,
    tls: "opportunistic",
    credentials: null,
    ...how,
  };
  return sendMail(target, message, AbortSignal.timeout(20_000));
}

/** Headers with folded lines joined; the body decoded. */
function read(text: string): { headers: Record<string, string>; body: string } {
  const [head = "", body = ""] = text.split(/\n\n([\s\S]*)/);
  const lines = head.replaceAll(/\n[ \t]+/g, " ").split("\n");
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2)));
  return { headers, body: Buffer.from(body, "base64").toString() };
}

function decoded(header: string): string {
  return header
    .replaceAll(/\?= =\?/g, "?==?")
    .replaceAll(/=\?UTF-8\?B\?([^?]*)\?=/g, (_, text: string) => Buffer.from(text, "base64").toString());
}

describe("an e-mail", () => {
  it("arrives unchanged, at all recipients", async () => {
    const server = await open();
    await send(server);
    expect(server.mails).toHaveLength(1);
    const [mail] = server.mails;
    expect(mail).toMatchObject({
      from: "tradewind@example.com",
      to: ["ops@example.com", "boss@example.com"],
      isSecure: false,
      user: null,
    });
    const { body, headers } = read(mail?.text ?? "");
    expect(body).toBe(MESSAGE.text.replaceAll("\n", "\r\n"));
    expect(headers).toMatchObject({
      From: MESSAGE.from,
      To: "ops@example.com, boss@example.com",
      Date: "Mon, 16 Nov 2026 09:15:14 +0000",
      "Message-ID": "<deadline-7@example.com>",
      "Content-Type": "text/plain; charset=utf-8",
    });
    expect(decoded(headers["Subject"] ?? "")).toBe(MESSAGE.subject);
    expect(server.lines.every((line) => line.length <= 998)).toBe(true);
  });

  it("keeps a long subject of any script whole, in words of at most 75 characters", async () => {
    const server = await open();
    const subject = `${"наименование 時刻 🕰️ ".repeat(20)}=?UTF-8?B?eA==?=`;
    await send(server, {}, { ...MESSAGE, subject });
    const text = server.mails[0]?.text ?? "";
    expect(decoded(read(text).headers["Subject"] ?? "")).toBe(subject);
    for (const [word] of text.matchAll(/=\?\S*\?=/g)) expect(word.length).toBeLessThanOrEqual(75);
  });

  it("cannot inject headers, recipients or an early end", async () => {
    const server = await open();
    await send(
      server,
      {},
      { ...MESSAGE, subject: "a\r\nBcc: thief@example.com\r\n\r\n.\r\nQUIT", text: ".\r\n.\r\nRSET" },
    );
    expect(server.mails).toHaveLength(1);
    const { body, headers } = read(server.mails[0]?.text ?? "");
    expect(headers["Bcc"]).toBeUndefined();
    expect(body).toBe(".\r\n.\r\nRSET");
    const wrong = send(server, {}, { ...MESSAGE, to: ["a@b.example>\r\nRCPT TO:<thief@example.com"] });
    await expect(wrong).rejects.toMatchObject({ code: "NOTICE_MAIL" });
    expect(server.lines.some((line) => line.includes("TO:<thief"))).toBe(false);
  });

  it("has a sender with a name of any script", async () => {
    const server = await open();
    await send(server, {}, { ...MESSAGE, from: "Frühwarnung: Zürich <tradewind@example.com>" });
    await send(server, {}, { ...MESSAGE, from: '"Ops, Team" <tradewind@example.com>' });
    const senders = server.mails.map(({ text }) => read(text).headers["From"] ?? "");
    expect(senders[0]).toMatch(/^[ -~]+$/);
    expect(senders.map(decoded)).toEqual([
      "Frühwarnung: Zürich <tradewind@example.com>",
      "Ops, Team <tradewind@example.com>",
    ]);
    expect(server.mails.every(({ from }) => from === "tradewind@example.com")).toBe(true);
    await expect(send(server, {}, { ...MESSAGE, to: ["grüße@example.com"] })).rejects.toThrow("beyond ASCII");
  });

  it("is sent to a server that supports HELO only", async () => {
    const server = await open({ knowsEhlo: false });
    await send(server);
    expect(server.mails).toHaveLength(1);
  });
});

describe("encryption and credentials", () => {
  const user = { user: "tradewind", password: "pä55 wörd" };
  const users = { [user.user]: user.password };
  const secure = { allowsAnyCertificate: true, credentials: user };

  it("start with STARTTLS if offered, and credentials follow", async () => {
    const server = await open({ certificate: CERTIFICATE, tls: "starttls", auth: ["PLAIN", "LOGIN"], users });
    await send(server, secure);
    expect(server.mails).toMatchObject([{ isSecure: true, user: "tradewind" }]);
    expect(server.lines.filter((line) => line.startsWith("EHLO"))).toHaveLength(2);
  });

  it("start with the first byte if configured; LOGIN is used without PLAIN", async () => {
    const server = await open({ certificate: CERTIFICATE, tls: "implicit", auth: ["LOGIN"], users });
    await send(server, { ...secure, tls: "implicit" });
    expect(server.mails).toMatchObject([{ isSecure: true, user: "tradewind" }]);
  });

  it("reject an untrusted certificate", async () => {
    for (const tls of ["starttls", "implicit"] as const) {
      const server = await open({ certificate: CERTIFICATE, tls, auth: ["PLAIN"], users });
      await expect(send(server, { ...secure, tls, allowsAnyCertificate: false })).rejects.toMatchObject({
        code: "NOTICE_MAIL",
      });
      expect(server.mails).toEqual([]);
      expect(server.lines.some((line) => line.startsWith("AUTH"))).toBe(false);
    }
  });

  it("are not sent in plain text, unless configured", async () => {
    const server = await open({ auth: ["PLAIN"], users });
    await expect(send(server, { credentials: user })).rejects.toThrow("not encrypted");
    await expect(send(server, { credentials: user, tls: "starttls" })).rejects.toThrow(
      "does not offer STARTTLS",
    );
    expect(server.lines.some((line) => line.startsWith("AUTH"))).toBe(false);
    await send(server, { credentials: user, tls: "none" });
    expect(server.mails).toMatchObject([{ user: "tradewind" }]);
  });

  it("are not shown in the error of a rejection", async () => {
    const server = await open({ auth: ["PLAIN"], users });
    const refused = send(server, { credentials: { ...user, password: "wrong" }, tls: "none" });
    await expect(refused).rejects.toThrow("535 no to AUTH PLAIN");
    const encoded = Buffer.from("\0tradewind\0wrong").toString("base64");
    await expect(refused).rejects.not.toThrow(encoded);
    await expect(send(await open(), { credentials: user, tls: "none" })).rejects.toThrow(
      "neither AUTH PLAIN",
    );
  });

  it("ignore responses injected before encryption", async () => {
    const server = await open({
      certificate: CERTIFICATE,
      tls: "starttls",
      smuggle: "250 AUTH PLAIN",
      auth: ["PLAIN"],
      users,
    });
    await expect(send(server, secure)).rejects.toMatchObject({ code: "NOTICE_MAIL" });
    expect(server.mails).toEqual([]);
  });
});

describe("a server that does not accept a message", () => {
  it("is named, with its answer and the command", async () => {
    const full = await open({
      answer: (line) => (line.startsWith("RCPT TO:<boss") ? "452 4.2.2 mailbox full" : undefined),
    });
    await expect(send(full)).rejects.toThrow(
      `127.0.0.1:${full.port} did not take the message: it answered 452 4.2.2 mailbox full to RCPT TO:<boss@example.com>`,
    );
    expect(full.mails).toEqual([]);
    const busy = await open({ answer: (line) => (line.startsWith("EHLO") ? "421 later" : undefined) });
    await expect(send(busy)).rejects.toMatchObject({ code: "NOTICE_MAIL" });
  });

  it("may close the connection, or not be an SMTP server", async () => {
    const gone = await open({ answer: (line) => (line === "DATA" ? null : undefined) });
    await expect(send(gone)).rejects.toThrow("closed the connection");
    await gone.close();
    await expect(send(gone)).rejects.toThrow("ECONNREFUSED");
    const other = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void other.close());
    await expect(send({ port: (other.address() as AddressInfo).port })).rejects.toThrow(
      "does not speak SMTP",
    );
  });

  it("may not answer: the time limit ends the attempt", async () => {
    const mute = createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void mute.close());
    const target: SmtpServer = {
      host: "127.0.0.1",
      port: (mute.address() as AddressInfo).port,
      tls: "none",
      credentials: null,
    };
    await expect(sendMail(target, MESSAGE, AbortSignal.timeout(200))).rejects.toThrow("it took too long");
    await expect(sendMail(target, MESSAGE, AbortSignal.abort())).rejects.toMatchObject({
      code: "NOTICE_MAIL",
    });
  });

  it("counts as delivered once it accepted the message, with any answer to QUIT", async () => {
    const rude = await open({ answer: (line) => (line === "QUIT" ? null : undefined) });
    await send(rude);
    expect(rude.mails).toHaveLength(1);
  });
});
