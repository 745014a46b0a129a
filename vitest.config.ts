import { configDefaults, defineConfig } from "vitest/config";
import { FileOrder } from "./packages/engine/test/support/file-order.ts";

export default defineConfig({
  resolve: { conditions: ["source", "node"] },
  ssr: { resolve: { conditions: ["source", "node"] } },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "packages/*/test/**/*.test.ts",
      "test/**/*.test.ts",
      "examples/**/*.test.ts",
    ],
    // They need a Kubernetes API server: see vitest.kubernetes.config.ts.
    exclude: [...configDefaults.exclude, "packages/engine/test/kubernetes/**"],
    // A worker runs many files, one after the other: to load the engine again for each costs more than most of the tests.
    // So a test file leaves nothing behind: no timer, no spy, no environment. What modules of test/support have opened is
    // closed by file-hooks.ts.
    isolate: false,
    // Node itself loads the modules, as in production: its imports cost nothing when they are used, Vite's do, each time.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: ["--conditions=source"],
    setupFiles: ["packages/engine/test/support/file-hooks.ts"],
    globalSetup: ["packages/engine/test/support/global-setup.ts"],
    sequence: { sequencer: FileOrder },
    // Leases, kills and real processes, on a machine of others that may stand still for seconds: there, and only there, a
    // test has a second try, and Vitest names it.
    retry: process.env.CI ? 1 : 0,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Made for two cores: with two workers they idle while tests wait, with four everything is late.
    maxWorkers: 3,
  },
});
