/** Compresses large JSON answers: the grid of 100 runs becomes a tenth of its size. Streams, logs and files are sent as they are. */
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { acceptedEncodings } from "../web/web-files.ts";
import type { ApiApp } from "./context.ts";

/** A smaller answer takes a few packets in any case. */
const LEAST_LENGTH = 8 * 1024;

const compress = promisify(gzip);

export function compressAnswers(app: ApiApp): void {
  app.addHook("onSend", async (request, reply, payload) => {
    if (typeof payload !== "string" || payload.length < LEAST_LENGTH) return payload;
    if (!/^application\/(?:problem\+)?json/.test(String(reply.getHeader("content-type")))) return payload;
    reply.header("vary", "accept-encoding");
    if (!acceptedEncodings(request.headers["accept-encoding"]).includes("gzip")) return payload;
    reply.header("content-encoding", "gzip");
    return compress(payload, { level: constants.Z_BEST_SPEED });
  });
}
