import type { FastifyInstance } from "fastify";

/** Every route, with a value for each parameter. */
export function routesOf(
  app: FastifyInstance,
): { method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE"; url: string }[] {
  const tree = app.printRoutes({ commonPrefix: false, includeHooks: false });
  const found: { method: "GET"; url: string }[] = [];
  const path: string[] = [];
  for (const line of tree.split("\n")) {
    const match = /^([│ ]*)[├└]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line);
    if (match === null) continue;
    const depth = match[1]!.length / 4;
    path.length = depth;
    path[depth] = match[2]!;
    for (const method of (match[3] ?? "")
      .split(", ")
      .filter((each) => each !== "" && each !== "HEAD" && each !== "OPTIONS")) {
      found.push({
        method: method as "GET",
        url: path
          .join("")
          .replace(/^\*$/, "/*")
          .replace(/:(\w+)/g, (_, name) =>
            /index|number|_id$/.test(name) && !/^(dag|task|connection)_/.test(name) ? "1" : "x",
          ),
      });
    }
  }
  return found;
}
