import type { TriggerAbortKind } from "@tradewind/sdk/program";

const WORDS: Readonly<Record<TriggerAbortKind, string>> = {
  cancelled: "no task waits for the trigger any more",
  fired: "the trigger has fired",
  moved: "another triggerer runs the trigger",
  stopped: "the trigger stops here and is started again later, or in another process",
};

/** What `abort.reason` is: code that only releases what this process holds needs no look at its `kind`. */
export function abortReason(kind: TriggerAbortKind): DOMException & { readonly kind: TriggerAbortKind } {
  return Object.assign(new DOMException(WORDS[kind], "AbortError"), { kind });
}
