/** Fetches the code of assignments over the API. */
import type { BundleText } from "../../code/bundle-text.ts";
import { readRequirements } from "../../code/requirements.ts";
import type { ExecutionClient } from "./execution-client.ts";
import { type Repeats, repeated } from "./repeated-call.ts";

export async function fetchRemoteBundle(
  client: ExecutionClient,
  hash: string,
  repeats: Repeats,
): Promise<BundleText> {
  const get = <T>(path: string) => repeated(() => client.get<T>(`bundles/${hash}${path}`), repeats);
  const { code, shared_chunk: sharedChunk } = await get<{
    code: string;
    shared_chunk: BundleText["sharedChunk"];
  }>("");
  if (Object.keys(readRequirements(code).files).length === 0) return { code, sharedChunk };
  const file = async (fileHash: string) => {
    const { content } = await get<{ content: string }>(`/files/${fileHash}`);
    return Buffer.from(content, "base64");
  };
  return { code, sharedChunk, file };
}
