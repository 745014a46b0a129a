/**
 * The API, with types generated from its OpenAPI document. Every request carries the session's cookie, and the header without which
 * the server rejects changes by a cookie.
 */
import { QueryCache, QueryClient } from "@tanstack/react-query";
import createFetchClient from "openapi-fetch";
import createQueryClient from "openapi-react-query";
import { noticeServerTime } from "../time/clock.ts";
import { ApiProblem, problemOf } from "./problem.ts";
import type { paths } from "./schema.gen.ts";

/** The path of the UI, with a slash at its end. */
export const BASE = new URL(document.baseURI).pathname.replace(/[^/]*$/, "");

const signedOut = new Set<() => void>();

/** Calls back when a request was rejected because the session has ended. */
export function onSignedOut(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

export const api = createFetchClient<paths>({
  baseUrl: `${location.origin}${BASE.replace(/\/$/, "")}`,
  headers: { "x-tradewind-csrf": "1" },
  // Lists as `state=a&state=b`.
  querySerializer: { array: { style: "form", explode: true } },
});

api.use({
  async onResponse({ response }) {
    noticeServerTime(response.headers.get("date"));
    if (!response.ok) throw await problemOf(response);
  },
});

export const $api = createQueryClient(api);

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      // The session itself is not asked again because it has ended.
      if (queryKey[1] === "/ui/session") return;
      if (error instanceof ApiProblem && error.status === 401) for (const each of signedOut) each();
    },
  }),
  defaultOptions: {
    queries: {
      // The live stream says what has changed; nothing is read again without a reason.
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => !(error instanceof ApiProblem && error.status < 500) && failures < 3,
    },
  },
});
