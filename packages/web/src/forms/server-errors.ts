/** Which field each message of the server is about. Pure. */
import type { ApiProblem } from "../api/problem.ts";
import type { FormErrors } from "./values.ts";
import { pointerOf } from "./values.ts";

/**
 * @param part The property of the request body that the form edits, e.g. "conf".
 * @returns messages by the pointer of their field, those about unknown fields included; null: it is not about this form.
 */
export function serverErrors({ document }: ApiProblem, part: string): FormErrors | null {
  const errors = new Map<string, string>();
  const prefix = pointerOf("", part);
  const sent = (document as { readonly errors?: readonly { pointer: string; message: string }[] }).errors;
  if (sent !== undefined) {
    for (const { message, pointer } of sent)
      if (pointer === prefix || pointer.startsWith(`${prefix}/`))
        errors.set(pointer.slice(prefix.length), message);
  } else if (Array.isArray(document.detail))
    for (const { loc, msg } of document.detail) {
      if (loc[0] !== "body" || loc[1] !== part) continue;
      const path = loc.slice(2);
      // The message begins with the path, which the place of the message shows.
      const name = [part, ...path].join(".");
      const text = msg.startsWith(`${name}: `) ? msg.slice(name.length + 2) : msg;
      errors.set(
        path.reduce<string>((pointer, each) => pointerOf(pointer, each), ""),
        text,
      );
    }
  return errors.size === 0 ? null : errors;
}
