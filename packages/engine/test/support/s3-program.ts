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

// The server lists in the order of its folders, and finds no common prefix of objects in deeper ones, unlike real S3.
const listObjects = server.store.listObjects.bind(server.store);
server.store.listObjects = async (
  bucket,
  { delimiter = "", maxKeys = 1_000, prefix = "", startAfter = "" },
) => {
  const { objects } = await listObjects(bucket, { prefix });
  const sorted = objects.toSorted((a, b) => (a.key < b.key ? -1 : 1)).filter(({ key }) => key > startAfter);
  const folderOf = (key: string) => {
    const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
    return end < 0 ? null : key.slice(0, end + 1);
  };
  const direct = sorted.filter(({ key }) => folderOf(key) === null);
  return {
    objects: direct.slice(0, maxKeys),
    commonPrefixes: [...new Set(sorted.flatMap(({ key }) => folderOf(key) ?? []))],
    isTruncated: direct.length > maxKeys,
  };
};
process.stdout.write(`${(await server.run()).port}\n`);
