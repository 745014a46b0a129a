/** Signals that come from outside. */

import { RESERVED_NAMESPACES } from "../model/signal/signal-names.ts";
import { EngineError } from "../service/errors.ts";
import { requireSendable, type SignalToSend } from "./signal.ts";

/** Throws SIGNAL_INVALID for what no caller may send. */
export function requireForeign(signal: SignalToSend): SignalToSend {
  requireSendable(signal);
  if (signal.namespace !== undefined && RESERVED_NAMESPACES.has(signal.namespace)) {
    throw new EngineError(
      "SIGNAL_INVALID",
      `A signal cannot be sent: the namespace "${signal.namespace}" is the engine's own. Choose another.`,
    );
  }
  // These names the engine gives: conditions on the signals of a run of its own rely on them.
  if (/^(?:task|scheduler):/.test(signal.sender ?? "")) {
    throw new EngineError(
      "SIGNAL_INVALID",
      `A signal cannot be sent: the sender "${signal.sender?.slice(0, 80)}" begins as those of the engine do.`,
    );
  }
  return signal;
}
