/**
 * The path of the public URL. A reverse proxy may remove it from requests or leave it: both are accepted, and links and
 * cookies carry it.
 */

/** Empty, or with a slash at its beginning only. */
export function basePathOf(publicUrl: string | undefined): string {
  return publicUrl === undefined ? "" : new URL(publicUrl).pathname.replace(/\/+$/, "");
}

export function withoutBasePath(url: string, basePath: string): string {
  if (basePath === "" || !url.startsWith(basePath)) return url;
  const rest = url.slice(basePath.length);
  if (rest === "" || rest.startsWith("?")) return `/${rest}`;
  return rest.startsWith("/") ? rest : url;
}
