/**
 * Notices as text, for the configuration: "webhook:https://hooks.example.com/x", "webhook:pager",
 * "email:ops@example.com?connection=mail", "signal:run.failed"; several with commas between them.
 */
import { DagDefinitionError, email, sendSignal, signal, webhook } from "@tradewind/sdk";
import type { NoticeAction } from "@tradewind/sdk/manifest";
import { Unfit } from "./setting-values.ts";

/** Addresses may contain commas: only a comma before the next kind separates. */
const BETWEEN = /\s*,\s*(?=(?:webhook|email|signal):)/;
const SHAPE =
  "must be webhook:<address or connection>, email:<address>?connection=<connection> or signal:<key>; several with commas between them";

/** Errors never contain a value: the address of a webhook is often its password. */
export function readNotices(text: string): NoticeAction[] {
  if (text.trim() === "") return [];
  return text
    .trim()
    .split(BETWEEN)
    .map((each) => {
      try {
        return noticeOf(each);
      } catch (error) {
        const why =
          error instanceof DagDefinitionError && !each.startsWith("webhook:") ? ` (${error.message})` : "";
        throw new Unfit(`${SHAPE}${why}.`);
      }
    });
}

function noticeOf(text: string): NoticeAction {
  const [, kind, rest = ""] = /^(webhook|email|signal):(.+)$/s.exec(text) ?? [];
  switch (kind) {
    case "webhook":
      return webhook(rest).action;
    case "email": {
      const [to = "", query = ""] = rest.split("?");
      return email({ to, connection: new URLSearchParams(query).get("connection") ?? "" }).action;
    }
    case "signal":
      return sendSignal(signal(rest)).action;
    default:
      throw new Error("unknown kind");
  }
}
