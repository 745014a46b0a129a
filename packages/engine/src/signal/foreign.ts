/** Signals from outside of the engine. */

import { RESERVED_NAMESPACES } from "../model/signal/signal-names.ts";
import { EngineError } from "../service/errors.ts";
import { requireSendable, type SignalToSend } from "./signal.ts";

/** Throws SIGNAL_INVALID for a signal that only the engine may send. */
export function requireForeign(signal: SignalToSend): SignalToSend {
  requireSendable(signal);
  if (signal.namespace !== undefined && RESERVED_NAMESPACES.has(signal.namespace)) {
    throw new EngineError(
      "SIGNAL_INVALID",
      `A signal cannot be sent: the namespace "${signal.namespace}" is reserved for the engine. Choose another.`,
    );
  }
  // Reserved sender names: conditions on the signals of a run rely on them.
  if (/^(?:task|scheduler):/.test(signal.sender ?? "")) {
    throw new EngineError(
      "SIGNAL_INVALID",
      `A signal cannot be sent: the sender "${signal.sender?.slice(0, 80)}" has a prefix that is reserved for the engine. Choose another.`,
    );
  }
  return signal;
}
