import { Link } from "@tanstack/react-router";
import { pagePath } from "../../app/paths.ts";

/** A signal that caused something; plain text if the log no longer has it. */
export function SignalLink({
  signal: { key, namespace, version },
}: {
  readonly signal: {
    readonly key: string | null;
    readonly namespace: string | null;
    readonly version: number;
  };
}) {
  if (key === null)
    return (
      <span className="text-muted" title="The signal log no longer has it">
        signal {version}
      </span>
    );
  return (
    <Link
      to={pagePath("signals")}
      search={{ signal: version, ...(namespace !== "default" && { namespace }) } as never}
      className="link font-mono break-all"
    >
      {key}
    </Link>
  );
}
