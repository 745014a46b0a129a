import type { TriggerAbortKind } from "@tradewind/sdk/program";

const WORDS: Readonly<Record<TriggerAbortKind, string>> = {
  cancelled: "no task waits for the trigger any more",
  fired: "the trigger has fired",
  moved: "another triggerer runs the trigger",
  stopped: "the trigger stops here and is started again later, or in another process",
};

/** The value of `abort.reason`. Code that only releases resources of this process need not read its `kind`. */
export function abortReason(kind: TriggerAbortKind): DOMException & { readonly kind: TriggerAbortKind } {
  return Object.assign(new DOMException(WORDS[kind], "AbortError"), { kind });
}
