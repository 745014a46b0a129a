import { once } from "node:events";
import { createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../../test/support/test-database.ts";
import { reachDatabase } from "./reach-database.ts";
import { serverVersion } from "./server-version.ts";

/** The address of the test's database with a mistake in it. */
async function misled(change: (url: URL) => void): Promise<{ url: string; host: string; name: string }> {
  const { url } = await testDatabase({ empty: true });
  const wrong = new URL(url);
  change(wrong);
  return { url: wrong.href, host: wrong.host, name: wrong.pathname.slice(1) };
}

/** @returns the error message and its code. */
const told = (url: string) =>
  reachDatabase(url, { applicationName: "test" }).then(
    () => expect.unreachable(),
    ({ code, message }: { code: string; message: string }) => `${message} [${code}]`,
  );

it("connects to a database that responds", async () => {
  const { url } = await testDatabase({ empty: true });
  const database = await reachDatabase(url, { applicationName: "test" });
  onTestFinished(() => database.close());
  expect(await serverVersion(database)).toMatch(/^\d+/);
});

it("names the user and the address when the password is wrong, without the password", async () => {
  const { url, host, name } = await misled((wrong) => {
    wrong.password = "s3cret";
  });
  const said = await told(url);
  expect(said).toContain(
    `The database "${name}" at ${host} (user "tradewind", from DATABASE_URL) rejected the connection: password authentication failed`,
  );
  expect(said).toMatch(/ Correct user and password in DATABASE_URL; .* \[DATABASE_REFUSED\]$/);
  expect(said).not.toContain("s3cret");
});

it("reports a missing password", async () => {
  const { url } = await misled((wrong) => {
    wrong.password = "";
  });
  expect(await told(url)).toMatch(
    /the server requires a password, and DATABASE_URL has none\. Correct DATABASE_URL\. \[DATABASE_REFUSED\]$/,
  );
});

it("reports a missing database", async () => {
  const { url } = await misled((wrong) => {
    wrong.pathname = "/nothing_here";
  });
  expect(await told(url)).toMatch(
    /^The database "nothing_here" at .* does not exist\. Create it \(CREATE DATABASE\), or correct the name in DATABASE_URL\. \[DATABASE_REFUSED\]$/,
  );
});

it.each(["127.0.0.1", "localhost"])("reports that nothing listens on %s", async (host) => {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  expect(await told(`postgresql://ann:pw@${host}:${port}/shop`)).toBe(
    `The database "shop" at ${host}:${port} (user "ann", from DATABASE_URL) cannot be reached: nothing listens there. Start PostgreSQL there, or correct host and port in DATABASE_URL. [DATABASE_UNREACHABLE]`,
  );
});

it("reports an unknown host", async () => {
  expect(await told("postgresql://ann:pw@nowhere.invalid/shop")).toMatch(
    /^The database "shop" at nowhere\.invalid:5432 .* cannot be reached: .*\. .*DATABASE_URL.* \[DATABASE_UNREACHABLE\]$/,
  );
});

it("names a file in the address that cannot be read", async () => {
  const said = await told(
    "postgresql://ann:pw@127.0.0.1:1/shop?sslmode=verify-full&sslrootcert=/nowhere.pem",
  );
  expect(said).toMatch(/^The database .*127\.0\.0\.1:1 .*\/nowhere\.pem.* \[DATABASE_UNREACHABLE\]$/);
});

/** A server that accepts every client and answers every query with its version. */
async function serverOfVersion(version: string): Promise<string> {
  const message = (type: string, body: Buffer) => {
    const head = Buffer.from(`${type}0000`);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const numbers = (...bytes: number[]) => Buffer.from(bytes);
  const ready = message("Z", Buffer.from("I"));
  const column = Buffer.concat([numbers(0, 1), Buffer.from("server_version\0"), Buffer.alloc(18)]);
  const value = Buffer.concat([numbers(0, 1, 0, 0, 0, version.length), Buffer.from(version)]);
  const answer = [message("T", column), message("D", value), message("C", Buffer.from("SHOW\0")), ready];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write(Buffer.concat([message("R", numbers(0, 0, 0, 0)), ready]));
      socket.on("data", (chunk) => (chunk[0] === 0x58 ? socket.end() : socket.write(Buffer.concat(answer))));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `postgres://ann@127.0.0.1:${(server.address() as { port: number }).port}/shop`;
}

it("rejects a server older than PostgreSQL 15", async () => {
  expect(await told(await serverOfVersion("14.11 (Debian 14.11-1)"))).toMatch(
    /^The database "shop" at .* is PostgreSQL 14\.11 \(Debian 14\.11-1\); Tradewind needs PostgreSQL 15 or newer\. .* \[DATABASE_TOO_OLD\]$/,
  );
});

it.each(["15.0", "16beta1", "18.4"])("accepts PostgreSQL %s", async (version) => {
  const database = await reachDatabase(await serverOfVersion(version), { applicationName: "test" });
  await database.close();
});
