/** Configuration files of a node's programs. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { CertificateAuthority } from '../certs/authority.ts';
import { cniFolder } from './node-packages.ts';

/** Addresses in the node's network namespace. Pods have one of each IP family, Services those that they request. */
export const network = {
  node: '10.77.0.1',
  nodeV6: 'fd00:77::1',
  pods: '10.244.0.0/16',
  podsV6: 'fd00:10:244::/56',
  services: '10.96.0.0/16',
  servicesV6: 'fd00:96::/112',
  /** Address of the Service `kubernetes`: the first of the range. */
  apiServer: '10.96.0.1',
  dns: '10.96.0.10',
  apiServerPort: 6443,
} as const;

export const nodeName = 'node1';
export const clusterDomain = 'cluster.local';
/** Image of the container that holds the namespaces of a pod. */
export const pauseImage = 'localhost/pause:test';

/** Paths of a node, below a short folder because some are sockets (limit 107 bytes). */
export function nodePaths(folder: string) {
  const at = (name: string): string => join(folder, name);
  return {
    ...{ folder, kubeconfig: at('kubeconfig'), kubelet: at('kubelet'), kubeletConfig: at('kubelet.yaml') },
    ...{ containerd: at('containerd.toml'), containerdSocket: at('c.sock'), cni: at('cni'), logs: at('log') },
    ...{ authority: at('ca.crt'), kubeletCertificate: at('kubelet.crt'), kubeletKey: at('kubelet.key') },
    ...{ clientCertificate: at('client.crt'), clientKey: at('client.key'), images: at('images') },
  };
}

export type NodePaths = ReturnType<typeof nodePaths>;

export interface NodeFiles {
  readonly paths: NodePaths;
  readonly cgroup: string;
  readonly adminToken: string;
  readonly authority: CertificateAuthority;
}

export function writeNodeFiles({ paths, cgroup, adminToken, authority }: NodeFiles): void {
  for (const folder of [paths.kubelet, paths.cni, paths.logs, paths.images]) mkdirSync(folder, { recursive: true });
  const kubelet = authority.issue([nodeName, network.node, '127.0.0.1']);
  const client = authority.issue(['api-server-to-kubelet']);
  const files: readonly (readonly [string, string])[] = [
    [paths.authority, authority.certificate],
    [paths.kubeletCertificate, kubelet.certificate],
    [paths.kubeletKey, kubelet.privateKey],
    [paths.clientCertificate, client.certificate],
    [paths.clientKey, client.privateKey],
    [paths.kubeconfig, stringify(kubeconfig(paths, adminToken))],
    [paths.kubeletConfig, stringify(kubeletConfiguration(paths, cgroup))],
    [paths.containerd, containerdConfiguration(paths)],
    [join(paths.cni, '10-test.conflist'), JSON.stringify(cniConfiguration(paths))],
  ];
  for (const [file, content] of files) writeFileSync(file, content, { mode: 0o600 });
}

function kubeconfig(paths: NodePaths, token: string): object {
  const server = `https://127.0.0.1:${network.apiServerPort}`;
  return {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'test' },
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': paths.authority } }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  };
}

function kubeletConfiguration(paths: NodePaths, cgroup: string): object {
  return {
    ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
    // By default the kubelet refuses to start with cgroup v1 or swap.
    ...{ failCgroupV1: false, failSwapOn: false },
    ...{ cgroupDriver: 'cgroupfs', cgroupRoot: `/${cgroup}`, cgroupsPerQOS: true, enforceNodeAllocatable: [] },
    localStorageCapacityIsolation: false,
    authentication: {
      ...{ anonymous: { enabled: false }, webhook: { enabled: false } },
      x509: { clientCAFile: paths.authority },
    },
    authorization: { mode: 'AlwaysAllow' },
    ...{ tlsCertFile: paths.kubeletCertificate, tlsPrivateKeyFile: paths.kubeletKey },
    containerRuntimeEndpoint: `unix://${paths.containerdSocket}`,
    ...{ clusterDomain, clusterDNS: [network.dns], resolvConf: '' },
    healthzPort: 0,
    // The test machine's disk may be nearly full.
    evictionHard: { 'nodefs.available': '1%' },
    ...{ podLogsDir: join(paths.folder, 'pod-logs'), volumePluginDir: join(paths.folder, 'plugins') },
    ...{ syncFrequency: '10s', nodeStatusUpdateFrequency: '10s', registerNode: true },
  };
}

function containerdConfiguration(paths: NodePaths): string {
  const quote = (text: string): string => JSON.stringify(text);
  const unused = ['internal.v1.opt', 'snapshotter.v1.btrfs', 'snapshotter.v1.zfs', 'snapshotter.v1.aufs'];
  const disabled = [...unused, 'snapshotter.v1.devmapper'].map((name) => quote(`io.containerd.${name}`));
  const cri = '[plugins."io.containerd.grpc.v1.cri"';
  return [
    'version = 2',
    `root = ${quote(join(paths.folder, 'root'))}`,
    `state = ${quote(join(paths.folder, 'state'))}`,
    `disabled_plugins = [${disabled.join(', ')}]`,
    '[grpc]',
    `address = ${quote(paths.containerdSocket)}`,
    `${cri}]`,
    `sandbox_image = ${quote(pauseImage)}`,
    'disable_apparmor = true',
    // Without CAP_SYS_RESOURCE the score cannot be lowered, and every sandbox fails.
    'restrict_oom_score_adj = true',
    `${cri}.containerd.runtimes.runc]`,
    'runtime_type = "io.containerd.runc.v2"',
    `${cri}.cni]`,
    `bin_dir = ${quote(cniFolder)}`,
    `conf_dir = ${quote(paths.cni)}`,
    '',
  ].join('\n');
}

function cniConfiguration(paths: NodePaths): object {
  const subnets = [network.pods.replace('/16', '/24'), network.podsV6.replace('/56', '/64')];
  const ipam = {
    ...{ type: 'host-local', dataDir: join(paths.folder, 'ipam') },
    ...{ ranges: subnets.map((subnet) => [{ subnet }]), routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }] },
  };
  // With hairpin mode a pod can reach itself through its Service.
  const bridge = { type: 'bridge', bridge: 'pods', isGateway: true, hairpinMode: true, ipam };
  return { cniVersion: '0.4.0', name: 'test', plugins: [bridge] };
}
