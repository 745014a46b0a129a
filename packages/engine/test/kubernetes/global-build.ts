import { controlPlane, helmBinary, kwokBinary } from "./kubernetes-binaries.ts";

/** Vitest runs this before the first test file: a build takes longer than any timeout of a test. */
export default async function build(): Promise<void> {
  await helmBinary();
  if (process.env.USE_EXISTING_CLUSTER === "true") return;
  await controlPlane();
  await kwokBinary();
}
