import type { Client } from "./client.ts";

/** A link that opens the web UI signed in, once. */
export interface SignInLink {
  readonly url: string;
  readonly expires_at: string;
}

export function createSignInLink(client: Client): Promise<SignInLink> {
  return client.post<SignInLink>("/ui/sign-in-links", { what: "cannot create a link to the web UI" });
}
