/** Shared by the documented tasks: objects that are removed after each task, requests from the client pod, and results. */
import type { KubernetesObject } from '../../../src/discovery/kubernetes/api-server.ts';
import { messageOf } from '../../../src/runtime/errors.ts';
import type { ObjectToWrite } from '../../cluster/cluster.ts';
import type { CheckFinding } from '../../demo/findings.ts';
import { eventually } from '../../harness/eventually.ts';
import type { InstalledMesh } from '../mesh/installed-mesh.ts';
import type { PodStreams } from '../mesh/pod-streams.ts';
import { resourceOfObject } from '../resources.ts';
import { objectsIn, podsOf, readyPods } from '../workloads.ts';
import type { SampleFiles } from './sample-files.ts';

/** Maximum time in milliseconds until a configuration change applies on a busy machine; an idle one takes less than a second. */
const convergenceLimitMs = 60_000;

interface CommandResult {
  readonly code: number;
  readonly stdout: string;
}

export interface CurlResult {
  /** `0` if there was no response. */
  readonly status: number;
  readonly body: string;
  readonly seconds: number;
  /** Exit code of curl. */
  readonly code: number;
}

export interface Task {
  readonly name: string;
  /** Page of Istio's documentation. */
  readonly page: string;
  /** Names of the applications that the task needs. */
  readonly needs: readonly ApplicationName[];
  run(tasks: TaskContext): Promise<void>;
}

/** Applications of the samples: files that are applied, and pods that become ready. */
const applications = {
  curl: { files: ['curl/curl.yaml'], pods: { curl: 1 } },
  httpbin: { files: ['httpbin/httpbin.yaml'], pods: { httpbin: 1 } },
  helloworld: { files: ['helloworld/helloworld.yaml'], pods: { helloworld: 2 } },
  bookinfo: {
    files: ['bookinfo-kube/bookinfo.yaml', 'bookinfo-kube/bookinfo-versions.yaml'],
    pods: { productpage: 1, details: 1, ratings: 1, reviews: 3 },
  },
} as const satisfies Record<string, { files: readonly string[]; pods: Readonly<Record<string, number>> }>;

export type ApplicationName = keyof typeof applications;

interface Expectation<Value> {
  readonly isExpected: (value: Value) => boolean;
  /** Describes the value for the report. */
  readonly describe?: (value: Value) => string;
  readonly limitMs?: number;
}

export class TaskContext {
  readonly mesh: InstalledMesh;
  readonly samples: SampleFiles;
  readonly findings: CheckFinding[] = [];
  readonly #runningApplications = new Set<ApplicationName>();
  readonly #appliedObjects = new Map<string, KubernetesObject>();
  readonly #streams: PodStreams;
  readonly #print: (line: string) => void;

  constructor(mesh: InstalledMesh, streams: PodStreams, samples: SampleFiles, print: (line: string) => void) {
    this.mesh = mesh;
    this.#streams = streams;
    this.samples = samples;
    this.#print = print;
  }

  get node() {
    return this.mesh.node;
  }

  get namespace(): string {
    return this.node.cluster.namespace;
  }

  /** Starts applications that are not running, and waits for their pods. They stay for the next task. */
  async start(names: readonly ApplicationName[]): Promise<void> {
    const addedNames = names.filter((name) => !this.#runningApplications.has(name));
    for (const name of addedNames) {
      this.#runningApplications.add(name);
      for (const file of applications[name].files) await this.#write(this.samples.read(file), this.namespace);
    }
    const pods = addedNames.flatMap((name) => Object.entries(applications[name].pods));
    await Promise.all(pods.map(([app, count]) => readyPods(this.node, app, count)));
  }

  /** Applies objects until the end of the task. */
  async apply(manifests: string, namespace = this.namespace): Promise<void> {
    for (const object of await this.#write(manifests, namespace)) {
      const { kind, metadata } = object;
      this.#appliedObjects.set(`${kind} ${metadata.namespace} ${metadata.name}`, object);
    }
  }

  /** Applies a file of the samples until the end of the task. */
  applySample(path: string): Promise<void> {
    return this.apply(this.samples.read(path));
  }

  async delete(kind: string, name: string, namespace = this.namespace): Promise<void> {
    const key = `${kind} ${namespace} ${name}`;
    const object = this.#appliedObjects.get(key);
    if (object === undefined) throw new Error(`${key} was not applied`);
    this.#appliedObjects.delete(key);
    await this.node.cluster.delete(resourceOfObject(object), name, namespace);
  }

  /** Removes the objects of the task in reverse order. */
  async removeApplied(): Promise<void> {
    for (const [key, object] of [...this.#appliedObjects].reverse()) {
      this.#appliedObjects.delete(key);
      await this.node.cluster.delete(resourceOfObject(object), object.metadata.name, object.metadata.namespace);
    }
  }

  async #write(manifests: string, namespace: string): Promise<KubernetesObject[]> {
    const objects = objectsIn(manifests).map((object) => ({ ...object, metadata: { namespace, ...object.metadata } }));
    for (const object of objects) await this.node.cluster.apply(resourceOfObject(object), object as ObjectToWrite);
    return objects;
  }

  logs(pod: string, container: string): Promise<string> {
    return this.#streams.logs({ namespace: this.namespace, name: pod }, container);
  }

  /**
   * Runs a command in a pod with the label `app`.
   * @throws Error if the command cannot be started; its exit code is a result
   */
  async exec(
    app: string,
    command: readonly string[],
    { namespace = this.namespace, container }: { readonly namespace?: string; readonly container?: string } = {},
  ): Promise<CommandResult> {
    const pod = await eventually(`a pod of ${app} runs`, async () => {
      const pods = await podsOf(this.node, app, namespace);
      return pods.find(({ metadata }) => metadata.deletionTimestamp === undefined);
    });
    const name = { namespace, name: pod.metadata.name };
    const { stdout, status } = await this.#streams.exec(name, container ?? app, command);
    const code = status === 'Success' ? 0 : Number(/exit code (\d+)$/.exec(status)?.[1] ?? Number.NaN);
    if (Number.isNaN(code)) throw new Error(`exec in ${name.name}: ${status}`);
    return { code, stdout };
  }

  /** Sends a request from the client pod with `curl` and these arguments. */
  async curl(args: readonly string[], namespace = this.namespace): Promise<CurlResult> {
    return curlResult(await this.exec('curl', ['curl', ...curlFlags, ...args], { namespace }));
  }

  /** Sends a request from the node, outside of the mesh. */
  async curlFromNode(args: readonly string[]): Promise<CurlResult> {
    // The output includes the exit code, because a command that fails rejects.
    const script = 'curl "$@"; echo " $?"';
    const output = await this.node.namespaces.run(['sh', '-c', script, 'sh', ...curlFlags, ...args]);
    const end = output.lastIndexOf(' ');
    return curlResult({ code: Number(output.slice(end)), stdout: output.slice(0, end) });
  }

  /**
   * Sends requests from the client pod over one connection, and returns the bodies.
   * @param url URL with a range such as `[1-100]`
   */
  async bodies(url: string, args: readonly string[] = []): Promise<string[]> {
    const { stdout } = await this.exec('curl', ['curl', '-s', '-w', separator, ...args, url]);
    return stdout.split(separator).slice(0, -1);
  }

  /**
   * Sends requests and counts them by status.
   * @param url URL with a range such as `[1-100]`
   * @param format format of curl's `--write-out`
   */
  async statuses(url: string, args: readonly string[] = [], format = '%{http_code}') {
    const command = ['curl', '-s', '-o', '/dev/null', '-w', `${format}\\n`, ...args, url];
    const { stdout } = await this.exec('curl', command);
    return countOf(stdout.trim().split('\n'));
  }

  /**
   * Records a result for the report.
   * @param detail text that does not fit into a table
   */
  record(description: string, observedText: string, documented: string, ok: boolean, detail?: string): void {
    this.findings.push({ check: description, seen: observedText, expected: documented, ok, ...(detail && { detail }) });
    this.#print(`  ${ok ? 'ok  ' : 'FAIL'} ${description}: ${observedText}${ok ? '' : ` (expected: ${documented})`}`);
  }

  /** Repeats a request until the result is as documented, and records the last result. */
  async converges<Value>(
    description: string,
    documented: string,
    attempt: () => Promise<Value>,
    { isExpected, describe = String, limitMs = convergenceLimitMs }: Expectation<Value>,
  ): Promise<void> {
    let observedText = 'nothing';
    const startedAt = performance.now();
    const ok = await eventually(
      description,
      async () => {
        try {
          const value = await attempt();
          observedText = describe(value);
          return isExpected(value);
        } catch (error) {
          observedText = messageOf(error);
          return false;
        }
      },
      { deadlineMs: limitMs },
    ).catch(() => false);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    this.record(description, `${observedText} (${seconds} s)`, documented, ok);
  }

  /** Repeats a request until it has a status. */
  async status(description: string, documented: number, attempt: () => Promise<CurlResult>): Promise<void> {
    await this.converges(description, String(documented), attempt, {
      isExpected: ({ status }) => status === documented,
      describe: ({ status, code }) => (status === 0 ? `0, curl ${code}` : String(status)),
    });
  }
}

const separator = '\n--8<--\n';
const curlFlags = ['-sS', '--max-time', '30', '-w', '\n%{http_code} %{time_total}'];

function curlResult({ code, stdout }: CommandResult): CurlResult {
  const end = stdout.lastIndexOf('\n');
  const [status, seconds] = stdout.slice(end + 1).split(' ');
  return { status: Number(status), seconds: Number(seconds), body: stdout.slice(0, Math.max(0, end)), code };
}

export function countOf(outcomeTexts: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const outcomeText of outcomeTexts) counts[outcomeText] = (counts[outcomeText] ?? 0) + 1;
  return counts;
}

export const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([outcomeText, count]) => `${outcomeText}: ${count}`)
    .join(', ');
