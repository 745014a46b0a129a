/** Who is signed in. Without a session, a sign-in page takes the place of every page. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { $api, api, BASE, onSignedOut } from "../api/client.ts";
import { ApiProblem, messageOf } from "../api/problem.ts";
import type { components } from "../api/schema.gen.ts";
import { Button } from "../ui/button.tsx";
import { Copyable } from "../ui/copy.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Failure, Loading } from "../ui/panels.tsx";
import { Brand } from "./brand.tsx";

type Session = components["schemas"]["WebSession"];

const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("useSession is called outside of SignedIn");
  return session;
}

export function SignedIn({ children }: { readonly children: ReactNode }) {
  const queries = useQueryClient();
  const [code, setCode] = useState(takeCode);
  const [linkError, setLinkError] = useState<unknown>(null);
  useEffect(() => {
    if (code === null) return;
    api
      .POST("/ui/session", { body: { code } })
      .catch(setLinkError)
      .finally(() => setCode(null));
  }, [code]);
  const session = useQuery({
    ...$api.queryOptions("get", "/ui/session"),
    enabled: code === null,
    retry: (failures, error: unknown) => !(error instanceof ApiProblem) && failures < 3,
  });
  useEffect(
    () => onSignedOut(() => void queries.invalidateQueries({ queryKey: ["get", "/ui/session"] })),
    [queries],
  );
  const problem = session.error as unknown;
  if (problem instanceof ApiProblem && problem.status === 401) return <SignIn linkError={linkError} />;
  if (session.data) return <SessionContext value={session.data}>{children}</SessionContext>;
  if (problem) return <Failure error={problem} onRetry={() => void session.refetch()} />;
  return <Loading label="Signing in" />;
}

/** The one-time code of a link, which is removed from the address at once. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return null;
  const isSignIn = location.pathname === `${BASE}sign-in`;
  history.replaceState(null, "", isSignIn ? BASE : location.pathname + location.search);
  return code;
}

function SignIn({ linkError }: { readonly linkError: unknown }) {
  const queries = useQueryClient();
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in · Tradewind";
  }, []);
  const shown = error ?? linkError;
  return (
    <main className="mx-auto flex max-w-md flex-col gap-4 p-6 pt-[14vh]">
      <Brand />
      <h1>Sign in</h1>
      <form
        className="flex flex-col gap-3"
        onSubmit={async (event) => {
          event.preventDefault();
          setBusy(true);
          setError(null);
          try {
            await api.POST("/ui/session", { body: { token: token.trim() } });
            await queries.invalidateQueries();
          } catch (problem) {
            setError(problem);
          } finally {
            setBusy(false);
          }
        }}
      >
        <Field label="Token" error={shown ? messageOf(shown) : undefined}>
          {(ids) => (
            <Input
              {...ids}
              type="password"
              autoComplete="current-password"
              value={token}
              onChange={(event) => setToken(event.target.value)}
              autoFocus
              required
            />
          )}
        </Field>
        <Button kind="primary" type="submit" disabled={busy || token.trim() === ""} className="self-start">
          Sign in
        </Button>
      </form>
      <p className="text-muted">On the machine of the server, this command opens a page that is signed in:</p>
      <Copyable text="tradewind open" />
      <p className="text-muted">On another machine, create a token:</p>
      <Copyable text="tradewind tokens create my-name" />
    </main>
  );
}
