/** Columns of large answers: one byte per value, in base64. */
export function bytesOf(column: string): Uint8Array {
  const text = atob(column);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}
