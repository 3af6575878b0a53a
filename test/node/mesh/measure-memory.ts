/**
 * `node test/node/mesh/measure-memory.ts [--pods N]`: memory of the first and the last pod's sidecar on a node. Pages that pods share (programs of the
 * image) are charged to the cgroup of the pod that read them first; the proportional set size (PSS) divides them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { KubernetesObject } from '../../../src/discovery/kubernetes/api-server.ts';
import { applyManifests, readyPods } from '../workloads.ts';
import { InstalledMesh } from './installed-mesh.ts';
import { scale } from './rollouts.ts';
import { application } from './sample-application.ts';

const memoryRoot = '/sys/fs/cgroup/memory';

interface ContainerMemory {
  readonly pod: string;
  /** `memory.usage_in_bytes` of the container's cgroup. */
  readonly usageBytes: number;
  /** Part of the usage, without pages of files. */
  readonly rssBytes: number;
  readonly pssBytes: number;
  /** PSS by name of the process. */
  readonly processes: Readonly<Record<string, number>>;
}

/** @throws Error if the container has no cgroup of v1 on this machine */
function memoryOf({ metadata, status }: KubernetesObject, container: string): ContainerMemory {
  const { containerStatuses = [], initContainerStatuses = [] } = status as Record<
    string,
    { name: string; containerID: string }[]
  >;
  const { containerID } = [...initContainerStatuses, ...containerStatuses].find(({ name }) => name === container)!;
  const id = containerID.replace('containerd://', '');
  const path = readdirSync(memoryRoot, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith(id));
  if (path === undefined) throw new Error(`no cgroup of ${metadata.name}/${container} below ${memoryRoot}`);
  const read = (file: string): string => readFileSync(join(memoryRoot, path, file), 'utf8');
  const processes: Record<string, number> = {};
  for (const pid of read('cgroup.procs').split('\n').filter(Boolean)) {
    const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
    const [, kilobytes] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [];
    processes[name] = (processes[name] ?? 0) + Number(kilobytes) * 1024;
  }
  return {
    pod: metadata.name,
    usageBytes: Number(read('memory.usage_in_bytes')),
    rssBytes: Number(/^rss (\d+)$/m.exec(read('memory.stat'))?.[1]),
    pssBytes: Object.values(processes).reduce((sum, bytes) => sum + bytes, 0),
    processes,
  };
}

function line(title: string, { usageBytes, rssBytes, pssBytes, processes }: ContainerMemory): string {
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const processTexts = Object.entries(processes).map(([name, bytes]) => `${name} ${mb(bytes)}`);
  return `${title}: cgroup ${mb(usageBytes)} (rss ${mb(rssBytes)}), PSS ${mb(pssBytes)} (${processTexts.join(', ')})`;
}

const { values } = parseArgs({ options: { pods: { type: 'string', default: '10' } } });
const pods = Number(values.pods);
const mesh = await InstalledMesh.start();
try {
  const { node } = mesh;
  await applyManifests(node, application('web'));
  const [first] = await readyPods(node, 'web');
  console.log(line('sidecar of the only pod', memoryOf(first!, 'istio-proxy')));
  await scale(node, { name: 'web' }, pods);
  const all = await readyPods(node, 'web', pods);
  const age = ({ status }: KubernetesObject): string => String((status as { startTime: string }).startTime);
  const laterPods = all.filter(({ metadata }) => metadata.name !== first!.metadata.name);
  const last = laterPods.toSorted((one, other) => age(one).localeCompare(age(other))).at(-1)!;
  const memoryUsages = all.map((pod) => memoryOf(pod, 'istio-proxy'));
  const meanPss = memoryUsages.reduce((sum, { pssBytes }) => sum + pssBytes, 0) / pods;
  console.log(line(`sidecar of the first of ${pods} pods`, memoryOf(first!, 'istio-proxy')));
  console.log(line(`sidecar of pod ${pods}`, memoryOf(last, 'istio-proxy')));
  console.log(`memory of ${pods} sidecars: mean PSS ${(meanPss / 1e6).toFixed(1)} MB`);
} finally {
  await mesh.node.stop();
}
process.exit();
