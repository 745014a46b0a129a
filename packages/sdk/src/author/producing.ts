/**
 * `ctx.produce`: asset events of an attempt. They are kept here until the attempt has ended and are part of its
 * outcome. If the attempt does not succeed, or its process dies, they are never stored.
 */
import { type AnyAsset, ASSET_NAMESPACE, isAlias, isAsset, type Producible } from "../asset/asset.ts";
import { show, TaskError } from "../check/errors.ts";
import { jsonCopy } from "../check/output-check.ts";
import { describeIssue } from "../check/standard-schema.ts";
import type { AssetManifest, Json } from "../manifest.ts";
import type { ProduceContext, ProduceOptions } from "../runtime/context.ts";
import type { SignalToSend, TaskCall } from "../runtime/program.ts";
import { CONDITION } from "../schedule/condition.ts";

/** Larger data belongs at the asset's address. */
const MAX_PAYLOAD_BYTES = 65_536;
const MAX_PARTITION = 200;

export class Production {
  readonly #call: TaskCall;
  readonly #declared: readonly AssetManifest[];
  /** All calls in order; null: rejected. */
  readonly #requested: Promise<SignalToSend | null>[] = [];
  #isClosed = false;

  constructor(call: TaskCall, declared: readonly AssetManifest[] = []) {
    this.#call = call;
    this.#declared = declared;
  }

  /** The part of the context that authors see. */
  context(): ProduceContext {
    return {
      produce: (what: Producible, ...rest: unknown[]) => {
        const made = isAlias(what)
          ? this.#made(rest[0], rest[1], { ...(rest[2] as ProduceOptions), alias: what.name })
          : this.#made(what, rest[0], { ...(rest[1] as ProduceOptions), alias: null });
        // The author receives the error from the returned promise.
        this.#requested.push(made.catch(() => null));
        return made.then(() => undefined);
      },
    };
  }

  /** Closes the attempt. Resolves with the signals to send with its success. */
  async close(): Promise<readonly SignalToSend[]> {
    this.#isClosed = true;
    return (await Promise.all(this.#requested)).filter((each) => each !== null);
  }

  async #made(
    asset: unknown,
    payload: unknown,
    { alias, partition }: ProduceOptions & { readonly alias: string | null },
  ): Promise<SignalToSend> {
    if (this.#isClosed) throw new Error("the task has already ended");
    if (!isAsset(asset)) throw refused(`it takes the result of asset(), got ${show(asset)}`);
    this.#require(asset, alias);
    const step = this.#call.host.currentStep();
    if (step !== null) {
      // After a wait the step is not repeated, so the attempt that succeeds would not have the event.
      throw new TaskError(
        "TW_STEP_NESTED",
        `ctx.produce(${show(asset.uri)}) inside ctx.step(${show(step)}) would be lost after a wait; put it outside`,
      );
    }
    const value = {
      payload: await checkedPayload(asset, payload),
      partition: checkedPartition(asset.uri, partition),
      alias,
    };
    return { namespace: ASSET_NAMESPACE, key: asset.uri, value };
  }

  #require({ uri }: AnyAsset, alias: string | null): void {
    const isDeclared = this.#declared.some((each) =>
      alias === null
        ? each.kind === "asset" && each.uri === uri
        : each.kind === "alias" && each.name === alias,
    );
    if (isDeclared) return;
    const name = alias === null ? `asset ${show(uri)}` : `alias ${show(alias)}`;
    throw refused(`task ${show(this.#call.taskId)} does not declare the ${name}; add it to its \`produces\``);
  }
}

async function checkedPayload(asset: AnyAsset, payload: unknown): Promise<Json> {
  const invalid = (problem: string) =>
    new TaskError("TW_ASSET_INVALID", `asset ${show(asset.uri)}: ${problem}`);
  const json = jsonCopy(
    payload,
    {
      root: "payload",
      notJson: invalid,
      tooLarge: (message) => invalid(`${message}; store larger data at the asset's address`),
    },
    MAX_PAYLOAD_BYTES,
  );
  const node = asset[CONDITION];
  const schema = node.kind === "signal" ? node.schema : null;
  const result = await schema?.["~standard"].validate(json);
  if (result?.issues) throw invalid(`payload: ${result.issues.map(describeIssue).join("; ")}`);
  return json;
}

function checkedPartition(uri: string, partition: unknown): string | null {
  if (partition === undefined) return null;
  const isText = typeof partition === "string" && partition !== "" && partition.length <= MAX_PARTITION;
  if (isText && partition.isWellFormed() && !/\p{Cc}/u.test(partition)) return partition;
  throw new TaskError(
    "TW_ASSET_INVALID",
    `asset ${show(uri)}: a partition has 1 to ${MAX_PARTITION} characters and no control characters, got ${show(partition)}`,
  );
}

function refused(problem: string): TaskError {
  return new TaskError("TW_BAD_ASSET", `ctx.produce: ${problem}`);
}
