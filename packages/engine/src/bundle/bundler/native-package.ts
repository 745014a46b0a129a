/** Recognizes packages with native code by their package.json, before any of it is loaded. */
import { readPackage } from "../../code/installed-package.ts";

/** Packages that find, download or compile the addon of the package that depends on them. */
const ADDON_LOADERS = [
  "@mapbox/node-pre-gyp",
  "@neon-rs/load",
  "bindings",
  "cmake-js",
  "node-addon-api",
  "node-gyp-build",
  "node-gyp-build-optional-packages",
  "node-pre-gyp",
  "pkg-prebuilds",
  "prebuild-install",
  "prebuildify",
];

/** One package per platform, of which npm installs the matching one: "@img/sharp-linux-x64". */
const PLATFORM_PACKAGE =
  /[-/](?:aix|android|darwin|freebsd|linux|linuxmusl|openharmony|win32)-(?:arm|arm64|ia32|loong64|ppc64|riscv64|s390x|x64)\b/;

export function isNativePackage(folder: string): boolean {
  const about = readPackage(folder);
  if (about === null) return false;
  if (about["gypfile"] === true || isObject(about["binary"]) || isObject(about["napi"])) return true;
  const needed = names(about["dependencies"]);
  if (ADDON_LOADERS.some((loader) => needed.includes(loader))) return true;
  return names(about["optionalDependencies"]).some((name) => PLATFORM_PACKAGE.test(name));
}

function names(dependencies: unknown): string[] {
  return isObject(dependencies) ? Object.keys(dependencies) : [];
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
