import S3rver from "s3rver";

/** A process that is an S3 server; says its port, then serves until it is killed. */
const [directory, port, ...buckets] = process.argv.slice(2);
const server = new S3rver({
  address: "127.0.0.1",
  port: Number(port),
  directory: directory as string,
  silent: true,
  configureBuckets: buckets.map((name) => ({ name })),
});

// It writes in place, so that an object could be seen half-written, as no real S3 shows it: requests for one come in turn.
const turns = new Map<string, Promise<unknown>>();
server.middleware.unshift(async ({ path }, next) => {
  const turn = (turns.get(path) ?? Promise.resolve()).then(next);
  const isOver = turn.catch(() => {});
  turns.set(path, isOver);
  await turn.finally(() => turns.get(path) === isOver && turns.delete(path));
});
process.stdout.write(`${(await server.run()).port}\n`);
