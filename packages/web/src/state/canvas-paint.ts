/** The colours of states for canvases, which cannot read custom properties, resolved once per theme. */
import { GLYPHS, type GlyphName, lookOf, type StateLook } from "./states.ts";

export interface CanvasPaint {
  /** A color of tokens.css by its custom property. */
  color(property: string): string;
  fill(state: string | null): string;
  look(state: string | null): StateLook;
  glyph(name: GlyphName): Path2D;
}

const paths = new Map<GlyphName, Path2D>();

function glyph(name: GlyphName): Path2D {
  const known = paths.get(name) ?? new Path2D(GLYPHS[name]);
  paths.set(name, known);
  return known;
}

/** Resolves the colours of the theme that `element` has now. Make another one when the theme changes. */
export function canvasPaint(element: HTMLElement): CanvasPaint {
  const probe = document.createElement("span");
  probe.hidden = true;
  // Otherwise, every colour is the one of texts while the system forces its colours.
  probe.style.setProperty("forced-color-adjust", "none");
  element.append(probe);
  const resolved = new Map<string, string>();
  const color = (property: string): string => {
    let value = resolved.get(property);
    if (value === undefined) {
      if (!probe.isConnected) element.append(probe);
      probe.style.color = `var(${property})`;
      value = getComputedStyle(probe).color;
      resolved.set(property, value);
      probe.remove();
    }
    return value;
  };
  return { color, fill: (state) => color(lookOf(state).color), look: lookOf, glyph };
}
