/** `/execution/v1/bundles`: the code of assignments. */
import { z } from "zod";
import type { BundleText } from "../../code/bundle-text.ts";
import { readRequirements } from "../../code/requirements.ts";
import type { Resource } from "../server/context.ts";
import { notFound } from "../server/problem.ts";
import { executionRoute } from "./execution-access.ts";

const hash = z.string().regex(/^[A-Za-z0-9_-]{8,128}$/);

export function bundles(fetchBundle: (hash: string) => Promise<BundleText>): Resource {
  return (app, options) => {
    const tags = ["Task execution"];
    app.get(
      "/execution/v1/bundles/:hash",
      {
        config: executionRoute(options),
        schema: {
          params: z.object({ hash }),
          response: {
            200: z.object({
              code: z.string(),
              shared_chunk: z.object({ file: z.string(), code: z.string() }).nullable(),
            }),
          },
          tags,
          summary: "Read the code of a DAG file",
        },
      },
      async (request) => {
        const { code, sharedChunk } = await found(fetchBundle, request.params.hash);
        return { code, shared_chunk: sharedChunk };
      },
    );

    app.get(
      "/execution/v1/bundles/:hash/files/:file_hash",
      {
        config: executionRoute(options),
        schema: {
          params: z.object({ hash, file_hash: hash }),
          response: { 200: z.object({ content: z.string() }) },
          tags,
          summary: "Read a file that a bundle requires, in base64",
        },
      },
      async (request) => {
        const bundle = await found(fetchBundle, request.params.hash);
        const { file_hash: fileHash } = request.params;
        const isRequired = Object.values(readRequirements(bundle.code).files).includes(fileHash);
        const content = isRequired ? await bundle.file?.(fileHash) : undefined;
        if (content === undefined) throw notFound(`The bundle has no file ${fileHash}`);
        return { content: Buffer.from(content).toString("base64") };
      },
    );
  };
}

async function found(fetchBundle: (hash: string) => Promise<BundleText>, hash: string): Promise<BundleText> {
  try {
    return await fetchBundle(hash);
  } catch (error) {
    if ((error as { code?: unknown }).code === "BUNDLE_MISSING") throw notFound(`There is no bundle ${hash}`);
    throw error;
  }
}
