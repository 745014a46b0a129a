/**
 * Large outputs of a worker's attempts. An output is written to this machine's disk while the task sends it, then uploaded;
 * the upload is repeated until the API has answered. Inputs are not stored here: their text is passed on as it arrives, and
 * continued after an interruption.
 *
 * If the worker dies, its attempts are lost, and drafts are left in its scratch folder, which is removed when it is old.
 */
import { createHash, randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import type { LargeValue, OutputReference } from "../../model/index.ts";
import { type AttemptOutputs, type OpenText, type OutputPlace, SCRATCH } from "../../output/large-outputs.ts";
import { OutputDraft } from "../../output/output-draft.ts";
import { damaged, notStored, unreadable } from "../../output/output-errors.ts";
import { INLINE_ONLY, type OutputLimits } from "../../output/output-limits.ts";
import { EngineError } from "../../service/errors.ts";
import { type ExecutionClient, ExecutionError } from "./execution-client.ts";
import { type Repeats, RetryPause, repeated } from "./repeated-call.ts";
import type { Claim } from "./worker-calls.ts";

export interface RemoteOutputsOptions {
  readonly client: ExecutionClient;
  readonly repeats: Repeats;
  /** The claim of an assignment. */
  readonly claimOf: (assignment: string) => Claim;
  /** For drafts. */
  readonly folder: string;
}

export class RemoteOutputs implements AttemptOutputs {
  /** Those of the server, known after the registration. */
  limits: OutputLimits = INLINE_ONLY;
  readonly #options: RemoteOutputsOptions;
  readonly #scratch: string;

  constructor(options: RemoteOutputsOptions) {
    this.#options = options;
    this.#scratch = join(options.folder, SCRATCH, `${process.pid}-${randomUUID()}`);
  }

  draft(): OutputDraft {
    return new OutputDraft(join(this.#scratch, `draft-${randomUUID()}.json`), this.limits.most);
  }

  /** @throws EngineError OUTPUT_NOT_STORED; the draft is removed in any case. */
  async keep(draft: OutputDraft, { attempt }: OutputPlace): Promise<OutputReference> {
    const { claimOf, client, repeats } = this.#options;
    try {
      const { bytes, sha256 } = await draft.finish();
      const { token, worker } = claimOf(attempt);
      const query = new URLSearchParams({ worker: `${worker}`, bytes: `${bytes}`, sha256 });
      const path = `outputs?${query}`;
      return await repeated(() => client.upload<OutputReference>(path, token, draft.path, bytes), repeats);
    } catch (error) {
      throw passedOn(error) ?? notStored(this.#scratch, null, error);
    } finally {
      await draft.discard();
    }
  }

  /** Nothing is read before its first piece is requested. */
  open(value: LargeValue, reader: string): Promise<OpenText> {
    return Promise.resolve({ pieces: () => this.#pieces(value, reader), close: () => {} });
  }

  async close(): Promise<void> {
    await rm(this.#scratch, { recursive: true, force: true }).catch(() => {});
  }

  /** @throws EngineError OUTPUT_MISSING, OUTPUT_DAMAGED, OUTPUT_UNREADABLE. */
  async *#pieces({ path, reference }: LargeValue, reader: string): AsyncGenerator<string> {
    const { claimOf, client, repeats } = this.#options;
    const { token, worker } = claimOf(reader);
    const { grant = "", id } = reference as OutputReference & { readonly grant?: string };
    const query = new URLSearchParams({ worker: `${worker}`, grant });
    if (path.length > 0) query.set("path", path.join(","));
    const decoder = new StringDecoder("utf8");
    const hash = createHash("sha256");
    const pause = new RetryPause(repeats);
    let from = 0;
    for (let isWhole = false; !isWhole; ) {
      try {
        query.set("from", `${from}`);
        for await (const piece of client.download(`outputs/${id}?${query}`, token)) {
          pause.reset();
          from += piece.length;
          hash.update(piece);
          const text = decoder.write(piece);
          if (text !== "") yield text;
        }
        isWhole = true;
      } catch (error) {
        await pause.after(error).catch((cause) => {
          throw passedOn(cause) ?? unreadable(reference, cause);
        });
      }
    }
    // The server has verified the object; this covers the way from there.
    if (path.length === 0 && hash.digest("hex") !== reference.sha256)
      throw damaged(reference, reference.key, "other bytes arrived than were stored");
  }
}

/** The server's error about an output; null: another error. */
function passedOn(error: unknown): EngineError | null {
  if (error instanceof EngineError) return error;
  const isAbout = error instanceof ExecutionError && error.code.startsWith("OUTPUT_");
  return isAbout ? new EngineError(error.code, error.message, { cause: error }) : null;
}
