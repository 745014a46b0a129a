import { expect, it } from "vitest";
import { loadPodTemplates, readPodTemplates } from "./pod-templates.ts";

const pod = (name: string, more = "", container = "task") => `
apiVersion: v1
kind: Pod
metadata:
  ${name === "" ? "labels: {}" : `name: ${name}`}${more}
spec:
  containers:
    - name: ${container}
      image: tasks:1
`;
const queues = (names: string) => `\n  annotations: { tradewind.dev/queues: "${names}" }`;

it("reads one template without a name", () => {
  const { byName, default: standard } = readPodTemplates(pod(""), "pod.yaml");
  expect(standard.name).toBe("default");
  expect(standard.pod.spec?.containers[0]?.image).toBe("tasks:1");
  expect([...byName.keys()]).toEqual(["default"]);
});

it("reads several templates, the default first, with the queues that they are for", () => {
  const text = [pod("small"), pod("gpu", queues("gpu, gpu-large")), pod("heavy", queues("heavy"))].join(
    "---",
  );
  const { byName, byQueue, default: standard } = readPodTemplates(`${text}---\n`, "pod.yaml");
  expect(standard.name).toBe("small");
  expect([...byName.keys()]).toEqual(["small", "gpu", "heavy"]);
  expect([...byQueue].map(([queue, { name }]) => `${queue} ${name}`)).toEqual([
    "gpu gpu",
    "gpu-large gpu",
    "heavy heavy",
  ]);
});

it.each([
  ["", "it is empty"],
  ["kind: [", "The pod template pod.yaml cannot be used: Flow sequence"],
  [pod("a").replace("Pod", "Deployment"), "its pod is not of kind Pod, version v1"],
  [pod("a", "", "main"), 'its pod needs a container with the name "task", which runs the task'],
  [`${pod("a")}---${pod("b", "", "main")}`, 'pod 2 needs a container with the name "task"'],
  [`${pod("a")}---${pod("")}`, "pod 2 needs a name: metadata.name"],
  [`${pod("a")}---${pod("a")}`, 'two templates are called "a"'],
  [
    `${pod("a", queues("gpu"))}---${pod("b", queues("gpu"))}`,
    'the templates "a" and "b" are both for queue "gpu"',
  ],
])("rejects %j", (text, why) => {
  expect(() => readPodTemplates(text, "pod.yaml")).toThrow(why);
  expect(() => readPodTemplates(text, "pod.yaml")).toThrow(
    expect.objectContaining({ code: "CONFIG_INVALID" }),
  );
});

it("names a file that does not exist", async () => {
  await expect(loadPodTemplates("/nowhere/pod.yaml")).rejects.toThrow(
    /^The pod template \/nowhere\/pod.yaml cannot be used: it cannot be read: ENOENT/,
  );
});
