/**
 * The requirements of a bundle besides its code: packages that are resolved on the machine that runs it, and files that
 * are stored with it. They are listed in the first line of the bundle, so that its hash covers them: another version of a
 * package, or other content of a file, is another bundle. The line contains no path of the build machine.
 */
export interface Requirements {
  /** Versions by package name. */
  readonly packages: Readonly<Record<string, string>>;
  /** Where the packages are resolved, relative to the DAG folder; "" for the DAG folder itself. */
  readonly folder: string;
  /** Content hashes by path in the bundle's tree of files. */
  readonly files: Readonly<Record<string, string>>;
}

const NO_REQUIREMENTS: Requirements = { packages: {}, folder: "", files: {} };

const LINE = /^\/\/ requires (\{.*\})\n/;
const PACKAGE_NAME = /^(?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*$/;

/** The name of a package, without a path inside it. */
export function isPackageName(text: string): boolean {
  return text.length <= 214 && PACKAGE_NAME.test(text);
}

export function isEmpty({ files, packages }: Requirements): boolean {
  return Object.keys(packages).length + Object.keys(files).length === 0;
}

/** The first line of a bundle; "" for a bundle without requirements. */
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
 * @throws if the line contains an invalid package name, or a path that leads elsewhere: bundles are built by processes
 *   that run user code.
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
