import { GLYPHS, type GlyphName, INK, lookOf } from "./states.ts";

/** The square of a state: fill and glyph. The word beside it, or `title`, names the state. */
export function StateGlyph({
  state,
  size = 16,
  title,
}: {
  readonly state: string | null | undefined;
  readonly size?: number;
  readonly title?: string;
}) {
  const { color, glyph, ink, isOutlined = false } = lookOf(state);
  const paint = `var(${color})`;
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      className={`shrink-0 ${state === "running" ? "motion-safe:animate-pulse" : ""}`}
      role={title === undefined ? undefined : "img"}
      aria-label={title}
      aria-hidden={title === undefined}
    >
      <rect
        x={isOutlined ? 0.75 : 0}
        y={isOutlined ? 0.75 : 0}
        width={isOutlined ? 14.5 : 16}
        height={isOutlined ? 14.5 : 16}
        rx={4}
        fill={isOutlined ? "none" : paint}
        stroke={isOutlined ? paint : "none"}
        strokeWidth={1.5}
      />
      <GlyphPath name={glyph} color={isOutlined ? paint : INK[ink]} />
    </svg>
  );
}

function GlyphPath({ name, color }: { readonly name: GlyphName; readonly color: string }) {
  return (
    <path
      d={GLYPHS[name]}
      fill={name === "play" ? color : "none"}
      stroke={color}
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
    />
  );
}

/** A state as glyph and word. */
export function StateBadge({
  state,
  label,
}: {
  readonly state: string | null | undefined;
  readonly label?: string;
}) {
  return (
    <span className="inline-flex items-center gap-1.5 align-middle font-medium whitespace-nowrap">
      <StateGlyph state={state} />
      {label ?? lookOf(state).label}
    </span>
  );
}
