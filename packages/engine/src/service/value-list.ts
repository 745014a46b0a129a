/** The allowed values, as the end of a sentence. */
export function oneOf(values: readonly unknown[]): string {
  const shown = values.map((value) => (typeof value === "object" ? JSON.stringify(value) : String(value)));
  return shown.length === 1 ? `${shown[0]}` : `one of: ${shown.join(", ")}`;
}
