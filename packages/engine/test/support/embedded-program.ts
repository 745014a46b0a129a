import { EmbeddedPostgres } from "../../src/store/embedded/embedded-postgres.ts";

/**
 * A process that owns an embedded server, for tests that kill it or run it as another user. Prints one line of JSON, then
 * waits: "exit" on its standard input ends it gracefully.
 */
const [dataDir] = process.argv.slice(2);
const server = await EmbeddedPostgres.start({ dataDir: dataDir as string });
process.stdout.write(
  `${JSON.stringify({ url: server.url, pid: server.pid, adopted: server.adopted, data: server.dataDirectory, uid: process.getuid?.() })}\n`,
);
process.stdin.on("data", () => process.exit(0));
