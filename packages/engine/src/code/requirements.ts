/**
 * What a bundle needs besides its code: packages that are resolved on the machine that runs it, and files that are stored
 * with it. They are listed in the first line of the bundle, so that its hash covers them: another version of a package, or
 * other content of a file, is another bundle. The line holds no path of the machine that made the bundle.
 */
export interface Requirements {
  /** Versions by package name. */
  readonly packages: Readonly<Record<string, string>>;
  /** Where the packages are looked up, relative to the DAG folder; "": in the DAG folder itself. */
  readonly folder: string;
  /** Content hashes by the place of a file in the bundle's tree of files. */
  readonly files: Readonly<Record<string, string>>;
}

const NO_REQUIREMENTS: Requirements = { packages: {}, folder: "", files: {} };

const LINE = /^\/\/ requires (\{.*\})\n/;
const PACKAGE_NAME = /^(?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*$/;

/** Of a package, without a path inside it. */
export function isPackageName(text: string): boolean {
  return text.length <= 214 && PACKAGE_NAME.test(text);
}

export function isEmpty({ files, packages }: Requirements): boolean {
  return Object.keys(packages).length + Object.keys(files).length === 0;
}

/** The first line of a bundle; "" for a bundle that needs nothing. */
export function requirementsLine(requirements: Requirements): string {
  if (isEmpty(requirements)) return "";
  const { files, folder, packages } = requirements;
  const parts = {
    ...(Object.keys(packages).length > 0 && { packages: sorted(packages) }),
    ...(folder !== "" && { folder }),
    ...(Object.keys(files).length > 0 && { files: sorted(files) }),
  };
  return `// requires ${JSON.stringify(parts)}\n`;
}

/**
 * @throws when the line names what cannot be a package, or a path that leads elsewhere: bundles are made by processes that
 *   run user code.
 */
export function readRequirements(code: string): Requirements {
  const line = LINE.exec(code);
  if (line === null) return NO_REQUIREMENTS;
  const { files = {}, folder = "", packages = {} } = JSON.parse(line[1] ?? "{}") as Partial<Requirements>;
  for (const [name, version] of Object.entries(packages))
    if (!isPackageName(name) || typeof version !== "string") throw invalid("package", name);
  for (const [path, hash] of Object.entries(files))
    if (!isInside(path) || !/^[0-9a-f]{64}$/.test(hash)) throw invalid("file", path);
  if (typeof folder !== "string" || (folder !== "" && !isInside(folder))) throw invalid("folder", folder);
  return { packages, folder, files };
}

function invalid(what: string, value: unknown): Error {
  return new Error(`invalid ${what} ${JSON.stringify(value)} in the requirements of a bundle`);
}

/** A relative path with "/" that stays below its base. */
function isInside(path: string): boolean {
  return path
    .split("/")
    .every((part) => part !== "" && part !== "." && part !== ".." && !/[\\\0:]/.test(part));
}

function sorted(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
