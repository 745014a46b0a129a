import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DeleteObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import type { ConnectionFacts } from "@tradewind/sdk/program";
import { afterFile } from "./after-file.ts";

/** An S3 server over HTTP that checks access keys, but no signatures. It can stop and start again with its objects. */
export interface TestS3Server {
  /** The content of a stored connection to it. */
  readonly connection: Partial<ConnectionFacts>;
  put(bucket: string, key: string, body: string): Promise<void>;
  delete(bucket: string, key: string): Promise<void>;
  /** The keys of all objects. */
  keys(bucket: string): Promise<string[]>;
  /** Names the server in the environment, as an operator does. Returns what restores it. */
  asEnvironment(): () => void;
  down(): Promise<void>;
  up(): Promise<void>;
}

/** The only account. */
const KEY = "S3RVER";

export async function s3Server(buckets: readonly string[]): Promise<TestS3Server> {
  const directory = await mkdtemp(join(tmpdir(), "tw-s3-"));
  const first = await start(directory, buckets, 0);
  let { child } = first;
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const endpoint = `http://127.0.0.1:${first.port}`;
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: KEY, secretAccessKey: KEY },
  });
  const down = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    kill();
    await once(child, "exit");
  };
  opened.push(async () => {
    client.destroy();
    await down();
    process.off("exit", kill);
    await rm(directory, { recursive: true, force: true });
  });
  return {
    connection: {
      type: "aws",
      login: KEY,
      password: KEY,
      extra: { endpoint_url: endpoint, region_name: "us-east-1" },
    },
    put: async (bucket, key, body) => {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: Buffer.from(body) }));
    },
    delete: async (bucket, key) => {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
    },
    keys: async (bucket) => {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
      return Contents.map(({ Key = "" }) => Key);
    },
    asEnvironment: () => {
      const before = { ...process.env };
      const names = {
        AWS_ENDPOINT_URL_S3: endpoint,
        AWS_REGION: "us-east-1",
        AWS_ACCESS_KEY_ID: KEY,
        AWS_SECRET_ACCESS_KEY: KEY,
      };
      Object.assign(process.env, names);
      return () => {
        for (const name of Object.keys(names))
          if (before[name] === undefined) delete process.env[name];
          else process.env[name] = before[name];
      };
    },
    down,
    up: async () => {
      child = (await start(directory, buckets, first.port)).child;
    },
  };
}

/** In a separate process that has DES: list continuation tokens are encrypted with it, and Node no longer includes it. */
async function start(directory: string, buckets: readonly string[], port: number) {
  const program = join(import.meta.dirname, "s3-program.ts");
  const flags = ["--openssl-legacy-provider", "--conditions=source", "--disable-warning=DEP0040"];
  const child = spawn(process.execPath, [...flags, program, directory, `${port}`, ...buckets], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    child.stdout.resume();
    return { child, port: Number(line) };
  }
  throw new Error("the S3 server did not start");
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
