/**
 * `npm run test:kubernetes`: the Kubernetes suite, against a kube-apiserver that is built at the first run, the one in
 * KUBEBUILDER_ASSETS, or with USE_EXISTING_CLUSTER=true the cluster of KUBECONFIG.
 */
import { mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

const kubernetes = mergeConfig(base, {
  test: { globalSetup: ["packages/engine/test/kubernetes/global-build.ts"] },
});
kubernetes.test.include = ["packages/engine/test/kubernetes/**/*.test.ts"];
kubernetes.test.exclude = [];
// Each file has an API server of 300 MB.
kubernetes.test.maxWorkers = 1;
export default kubernetes;
