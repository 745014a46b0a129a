/** Fetches the code of assignments over the API. */
import type { BundleText } from "../../code/bundle-text.ts";
import { readRequirements } from "../../code/requirements.ts";
import type { ExecutionClient } from "./execution-client.ts";

export async function fetchRemoteBundle(client: ExecutionClient, hash: string): Promise<BundleText> {
  const { code, shared_chunk: sharedChunk } = await client.get<{
    code: string;
    shared_chunk: BundleText["sharedChunk"];
  }>(`bundles/${hash}`);
  if (Object.keys(readRequirements(code).files).length === 0) return { code, sharedChunk };
  const file = async (fileHash: string) => {
    const { content } = await client.get<{ content: string }>(`bundles/${hash}/files/${fileHash}`);
    return Buffer.from(content, "base64");
  };
  return { code, sharedChunk, file };
}
