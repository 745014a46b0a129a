/**
 * References of large outputs as workers receive them. Each comes with a grant: a worker can read the objects whose
 * references it received for its assignment, and no others, also if it invents a reference.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LargePlace, OutputReference } from "../../model/index.ts";
import { readGrant } from "../../secret/attempt-token.ts";
import type { SecretBox } from "../../secret/secret-box.ts";

/** A place of a large value, as JSON. */
export type GrantedPlace = Pick<LargePlace, "at"> & {
  readonly value: {
    readonly reference: OutputReference & { readonly grant: string };
    readonly path: readonly number[];
  };
};

export function granted(
  box: SecretBox,
  assignment: string,
  places: readonly Pick<LargePlace, "at" | "value">[],
): GrantedPlace[] {
  return places.map(({ at, value: { path, reference } }) => ({
    at,
    value: { reference: { ...reference, grant: readGrant(box, assignment, reference.id) }, path },
  }));
}

/** The content of an assignment, with grants for its large inputs. */
export function withGrants(box: SecretBox, assignment: string, content: Json): Json {
  const { large } = content as { readonly large?: readonly LargePlace[] };
  if (large === undefined) return content;
  return { ...(content as object), large: granted(box, assignment, large) } as unknown as Json;
}
