import S3rver from "s3rver";

/** A process with an S3 server. Prints its port, then serves until it is killed. */
const [directory, port, ...buckets] = process.argv.slice(2);
const server = new S3rver({
  address: "127.0.0.1",
  port: Number(port),
  directory: directory as string,
  silent: true,
  configureBuckets: buckets.map((name) => ({ name })),
});

// The server writes in place, so an object could be read half-written, unlike in real S3: requests for one object are
// serialised.
const turns = new Map<string, Promise<unknown>>();
server.middleware.unshift(async ({ path }, next) => {
  const turn = (turns.get(path) ?? Promise.resolve()).then(next);
  const isOver = turn.catch(() => {});
  turns.set(path, isOver);
  await turn.finally(() => turns.get(path) === isOver && turns.delete(path));
});
process.stdout.write(`${(await server.run()).port}\n`);
