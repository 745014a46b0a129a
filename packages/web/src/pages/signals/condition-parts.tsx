import { Link } from "@tanstack/react-router";
import { pagePath } from "../../app/paths.ts";

export interface ConditionPart {
  readonly text: string;
  /** null: unknown. */
  readonly is_met: boolean | null;
  /** Of the signal that has arrived. */
  readonly version: number | null;
}

/** The parts of a condition with a mark each; a part that is met leads to its signal. */
export function ConditionParts({
  condition,
  parts,
}: {
  readonly condition: string;
  readonly parts: readonly ConditionPart[];
}) {
  return (
    <span className="flex flex-wrap gap-x-3" title={condition}>
      {parts.map(({ is_met, text, version }) => (
        <span key={text} className="min-w-0 break-all">
          {is_met !== null && <span aria-hidden>{is_met ? "✓" : "○"} </span>}
          {is_met && version !== null ? (
            <Link to={pagePath("signals")} search={{ signal: version } as never} className="link">
              <code>{text}</code>
            </Link>
          ) : (
            <code>{text}</code>
          )}
          {is_met !== null && <span className="sr-only">{is_met ? " (met)" : " (missing)"}</span>}
        </span>
      ))}
    </span>
  );
}
