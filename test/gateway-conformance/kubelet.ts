/**
 * Runs the pods of one node: echo servers and proxies, each pod in a separate network namespace, and serves their logs.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { createAuthority } from '../certs/authority.ts';
import { endWithRunner } from '../harness/runner-watch.ts';
import type { ClusterApi, KubeObject } from './cluster-api.ts';
import { proxyImage } from './gateway-proxies.ts';
import { type NodeNetwork, nodeAddress, type PodNamespace } from './node-network.ts';
import { nodeName, type Objects } from './workloads.ts';

export interface KubeletOptions {
  readonly api: ClusterApi;
  readonly network: NodeNetwork;
  /** Contains a folder `NAMESPACE/NAME` for each pod, with a log of each container. */
  readonly folder: string;
  /** Path of the suite's backend, which runs each image that is not a proxy. */
  readonly echo: string;
  readonly agent: readonly string[];
  readonly report: (line: string) => void;
}

const kubeletPort = 10_250;
const tokenSeconds = 43_200;

interface RunningPod {
  readonly folder: string;
  readonly namespace: PodNamespace;
  readonly processes: ChildProcess[];
  /** Readiness URL; always ready if absent. */
  readonly probe?: string;
  isReady: boolean;
}

export class Kubelet {
  readonly #options: KubeletOptions;
  readonly #pods = new Map<string, RunningPod>();
  readonly #startingPods = new Set<string>();

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  /** Registers the node and serves logs. */
  async start(): Promise<void> {
    const { api } = this.#options;
    const { certificate, privateKey } = createAuthority().issue([nodeAddress]);
    const server = createServer({ cert: certificate, key: privateKey }, (request, response) => {
      const [, resource, namespace = '', pod = '', container = ''] = (request.url ?? '').split('?')[0]!.split('/');
      try {
        if (resource !== 'containerLogs') throw new Error(`${resource} is not served`);
        response.end(readFileSync(join(this.#folderOf({ namespace, name: pod }), `${container}.log`)));
      } catch (error) {
        response.writeHead(404).end(String(error));
      }
    });
    server.listen(kubeletPort, nodeAddress);
    const topology = 'topology.kubernetes.io';
    const labels = { [`${topology}/region`]: 'region1', [`${topology}/zone`]: 'zone1' };
    await api.create('/api/v1/nodes', { metadata: { name: nodeName, labels } });
    await api.patch(`/api/v1/nodes/${nodeName}/status`, {
      status: {
        addresses: [{ type: 'InternalIP', address: nodeAddress }],
        daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
      },
    });
  }

  /** Starts and stops pods, and reports their readiness. */
  async run(objects: Objects): Promise<void> {
    const pods = objects.get('pods')!.filter(({ spec }) => spec.nodeName === nodeName);
    const desiredPods = new Map(
      pods.filter(({ metadata }) => !metadata.deletionTimestamp).map((pod) => [pod.metadata.uid, pod]),
    );
    for (const [uid, runningPod] of this.#pods) if (!desiredPods.has(uid)) await this.#end(uid, runningPod);
    for (const [uid, pod] of desiredPods) {
      const runningPod = this.#pods.get(uid);
      if (runningPod !== undefined) await this.#probe(pod, runningPod);
      else if (!this.#startingPods.has(uid)) {
        this.#startingPods.add(uid);
        // Pods that wait for a Secret do not delay others.
        void this.#startPod(pod)
          .catch((error: unknown) => this.#options.report(`pod ${pod.metadata.name} did not start: ${error}`))
          .finally(() => this.#startingPods.delete(uid));
      }
    }
  }

  async end(): Promise<void> {
    for (const [uid, runningPod] of this.#pods) await this.#end(uid, runningPod);
  }

  async #end(uid: string, { processes, namespace, folder }: RunningPod): Promise<void> {
    this.#pods.delete(uid);
    for (const { pid, exitCode } of processes) {
      try {
        if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGKILL');
      } catch {
        // The process has already exited.
      }
    }
    await namespace.end();
    rmSync(join(folder, 'run'), { recursive: true, force: true });
  }

  #folderOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
    return join(this.#options.folder, namespace, name);
  }

  async #startPod(pod: KubeObject): Promise<void> {
    const { metadata, spec } = pod;
    const folder = this.#folderOf(metadata);
    mkdirSync(folder, { recursive: true });
    const mounts = await this.#writeVolumes(pod, folder);
    const namespace = await this.#options.network.addPod();
    const processes: ChildProcess[] = [];
    const isProxy = spec.containers.some(({ image }: KubeObject) => image === proxyImage);
    const runningPod: RunningPod = {
      ...{ folder, namespace, processes, isReady: false },
      ...(isProxy && { probe: `http://${namespace.address}:15021/healthz/ready` }),
    };
    this.#pods.set(metadata.uid, runningPod);
    for (const container of spec.containers) {
      const command =
        container.image === proxyImage ? await this.#proxy(pod, runningPod) : this.#echo(pod, container, mounts);
      processes.push(this.#spawn(runningPod, container.name, command));
    }
    await this.#probe(pod, runningPod);
  }

  /**
   * Writes Secrets and ConfigMaps as files. @returns host path of each mount path. @throws Error if an object does not
   * exist yet
   */
  async #writeVolumes({ metadata, spec }: KubeObject, folder: string): Promise<ReadonlyMap<string, string>> {
    const mountPaths = new Map<string, string>();
    for (const { name, secret, configMap } of spec.volumes ?? []) {
      const [plural, object] = secret ? ['secrets', secret.secretName] : ['configmaps', configMap?.name];
      if (object === undefined) continue;
      const path = `/api/v1/namespaces/${metadata.namespace}/${plural}/${object}`;
      const sourceObject = await this.#options.api.get(path);
      if (sourceObject === undefined) throw new Error(`${plural} ${object} does not exist`);
      const volumePath = join(folder, 'volumes', name);
      mkdirSync(volumePath, { recursive: true });
      const items = (secret ?? configMap).items ?? [];
      for (const [key, value] of Object.entries<string>(sourceObject.data ?? {})) {
        const file = items.find((item: KubeObject) => item.key === key)?.path ?? key;
        writeFileSync(join(volumePath, file), secret ? Buffer.from(value, 'base64') : value);
      }
      for (const { volumeMounts = [] } of spec.containers) {
        for (const mount of volumeMounts) if (mount.name === name) mountPaths.set(mount.mountPath, volumePath);
      }
    }
    return mountPaths;
  }

  #echo(pod: KubeObject, container: KubeObject, mounts: ReadonlyMap<string, string>): Command {
    const env: Record<string, string> = {};
    for (const { name, value, valueFrom } of container.env ?? []) {
      let text: string = value ?? fieldOf(pod, valueFrom?.fieldRef?.fieldPath ?? '');
      for (const [path, hostPath] of mounts) if (text.startsWith(path)) text = text.replace(path, hostPath);
      env[name] = text;
    }
    return { args: [this.#options.echo], env };
  }

  async #proxy({ metadata, spec }: KubeObject, { folder, namespace }: RunningPod): Promise<Command> {
    const { name, namespace: podNamespace, uid, labels } = metadata;
    const account = spec.serviceAccountName ?? 'default';
    const { api } = this.#options;
    const token = await api.create(`/api/v1/namespaces/${podNamespace}/serviceaccounts/${account}/token`, {
      ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' },
      spec: {
        ...{ audiences: ['istio-ca'], expirationSeconds: tokenSeconds },
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    });
    const root = await this.#rootCertificate(podNamespace);
    const files: Record<string, string> = {
      'var/run/secrets/tokens/istio-token': token.status.token,
      'var/run/secrets/istio/root-cert.pem': root,
      'etc/istio/pod/labels': Object.entries(labels)
        .map(([key, value]) => `${key}="${value}"\n`)
        .join(''),
    };
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(folder, file, '..'), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    return {
      args: [
        ...[...this.#options.agent, 'proxy', 'router', '--domain', `${podNamespace}.svc.cluster.local`],
        ...['--concurrency', '1', '--runDir', join(folder, 'run'), '--terminationDrainDuration', '1s'],
      ],
      env: {
        ...{ POD_NAME: name, POD_NAMESPACE: podNamespace, INSTANCE_IP: namespace.address, POD_IP: namespace.address },
        ...{ SERVICE_ACCOUNT: account, ISTIO_METAJSON_LABELS: JSON.stringify(labels) },
        ...{ ISTIO_META_CLUSTER_ID: 'Kubernetes', ISTIO_META_WORKLOAD_NAME: name },
      },
    };
  }

  async #rootCertificate(namespace: string): Promise<string> {
    for (;;) {
      const rootConfigMap = await this.#options.api.get(
        `/api/v1/namespaces/${namespace}/configmaps/istio-ca-root-cert`,
      );
      const text = rootConfigMap?.data?.['root-cert.pem'];
      if (text !== undefined) return text;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }

  #spawn({ folder, namespace }: RunningPod, name: string, { args, env }: Command): ChildProcess {
    writeFileSync(join(folder, 'hosts'), `127.0.0.1 localhost\n${nodeAddress} istiod.istio-system.svc\n`);
    const withHosts = ['sh', '-c', 'mount --bind hosts /etc/hosts && exec "$@"', 'pod', ...args];
    const [program = '', ...programArgs] = namespace.within(withHosts, folder);
    const log = openSync(join(folder, `${name}.log`), 'a');
    const child = spawn(program, programArgs, {
      ...{ cwd: folder, detached: true, stdio: ['ignore', log, log] },
      env: { PATH: process.env.PATH, HOME: process.env.HOME, XDG_CACHE_HOME: process.env.XDG_CACHE_HOME, ...env },
    });
    endWithRunner(child);
    return child;
  }

  async #probe(pod: KubeObject, runningPod: RunningPod): Promise<void> {
    if (runningPod.isReady) return;
    const { probe, namespace } = runningPod;
    const isReady = probe === undefined || (await isOk(probe));
    if (!isReady && pod.status?.podIP !== undefined) return;
    runningPod.isReady = isReady;
    const time = new Date().toISOString().replace(/\.\d+/, '');
    const conditions = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
      ...{ type, lastTransitionTime: time },
      status: isReady || type !== 'Ready' ? 'True' : 'False',
    }));
    const { address } = namespace;
    const { metadata, spec } = pod;
    const containerStatuses = spec.containers.map(({ name, image }: KubeObject) => ({
      ...{ name, image, imageID: '', ready: isReady, restartCount: 0, started: true },
    }));
    await this.#options.api.patch(`/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/status`, {
      status: {
        ...{ phase: 'Running', podIP: address, podIPs: [{ ip: address }], hostIP: nodeAddress, startTime: time },
        ...{ conditions, containerStatuses },
      },
    });
  }
}

interface Command {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Value of a downward API field. */
function fieldOf({ metadata }: KubeObject, path: string): string {
  const { name, namespace } = metadata;
  return ({ 'metadata.name': name, 'metadata.namespace': namespace } as Record<string, string>)[path] ?? '';
}

async function isOk(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(1_500) })).status === 200;
  } catch {
    return false;
  }
}
