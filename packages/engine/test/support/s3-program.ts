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
process.stdout.write(`${(await server.run()).port}\n`);
