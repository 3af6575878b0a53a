/** A pilot-discovery that watches a cluster, with an inspector. */
import { join } from 'node:path';
import { writeKubeconfig } from '../../cluster/mesh-objects.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { Inspector } from '../../harness/inspector.ts';
import { nowMs } from '../../sidecars/fleet.ts';
import { print } from '../bench-run.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import { memoryOf } from '../memory-usage.ts';
import type { Programs } from '../programs.ts';
import { type CollectedMemory, collectedMemory } from '../push/collected-memory.ts';
import { startPilot } from '../push/servers.ts';
import type { FilledCluster } from './filled-cluster.ts';

export interface ClusterPilot {
  readonly pid: number;
  readonly port: number;
  readonly readyMs: number;
  readonly readyCpuMs: number;
  readonly inspector: Inspector;
  /** Collects garbage first. */
  collectedMemory(): Promise<CollectedMemory>;
  /** Prints the memory before and after a garbage collection. */
  printMemory(when: string): Promise<void>;
  stop(): Promise<void>;
}

/** @param executable replaces the one in `bin/` */
export async function startClusterPilot(
  programs: Programs,
  { cluster }: FilledCluster,
  executable?: string,
): Promise<ClusterPilot> {
  const kubeconfig = join(programs.root, 'kubeconfig');
  writeKubeconfig(kubeconfig, cluster);
  const [inspectorPort, ...ports] = await freePorts(4);
  const pilot = await startPilot(
    programs,
    { configDirectory: '', meshConfigFile: '' },
    {
      debounce: '1ms',
      ports,
      executable,
      env: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` },
      args: ['--registries', 'Kubernetes', '--kubeconfig', kubeconfig],
    },
  );
  const ready = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${pilot.httpPort}/ready`)).ok;
  await eventually('it is ready', ready, { deadlineMs: 300_000, everyMs: 20, hopeless: pilot.hopeless });
  const began = { readyMs: nowMs() - pilot.startedAtMs, readyCpuMs: cpuTimeMs(pilot.pid) };
  const inspector = await Inspector.attach(inspectorPort!);
  return {
    ...began,
    pid: pilot.pid,
    port: pilot.port,
    inspector,
    collectedMemory: () => collectedMemory(pilot.pid, inspector),
    printMemory: async (label) => {
      const { rssMib, peakMib } = memoryOf(pilot.pid);
      const { heapMib, buffersMib } = await collectedMemory(pilot.pid, inspector);
      const [rss, peak, heap, buffers] = [rssMib, peakMib, heapMib, buffersMib].map((mib) => mib.toFixed(0));
      print(
        `${label}: ${rss} MiB resident, ${peak} at most; after a collection ${heap} of heap, ${buffers} of buffers`,
      );
    },
    stop: async () => {
      inspector.close();
      await pilot.stop();
    },
  };
}
