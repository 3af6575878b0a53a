/**
 * A Kubernetes cluster of one real node: API server, controller manager, scheduler, containerd, kubelet and kube-proxy, in its own network
 * namespace.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findExecutable } from '../../src/runtime/files/executable.ts';
import { loadAuthority } from '../certs/authority.ts';
import { type RunningApiServer, startApiServer } from '../cluster/api-server-process.ts';
import { Cluster } from '../cluster/cluster.ts';
import { findOrBuild, nodeProgram } from '../cluster/go-program.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { isAlive } from '../harness/process-alive.ts';
import { Program } from '../harness/program.ts';
import { createCgroupParent, removeAbandonedCgroups, removeCgroupParent } from './cgroup-parent.ts';
import { type Image, importImage, importLayout } from './image.ts';
import { type NodePaths, network, nodeName, nodePaths, pauseImage, writeNodeFiles } from './node-configuration.ts';
import { NodeDialer } from './node-dialer.ts';
import { childOf, NodeNamespaces } from './node-namespaces.ts';
import { requireNodePackages } from './node-packages.ts';
import { hasCondition, resources } from './resources.ts';

export interface RunningNode {
  /** Its API server, with a namespace for the tests. */
  readonly cluster: Cluster;
  readonly namespaces: NodeNamespaces;
  readonly dialer: NodeDialer;
  readonly folder: string;
  importImage(image: Image): Promise<void>;
  /** @param layout folder of an OCI layout; its images get the names of its index */
  importLayout(layout: string): Promise<void>;
  /** Kills a program with SIGKILL and starts it again. Pods continue to run. */
  restart(program: 'containerd' | 'kubelet'): Promise<void>;
  /** Last lines of each program, for the message of a failed test. */
  lastLines(): string;
  /** Ends all processes and removes files and cgroups. */
  stop(): Promise<void>;
}

const folderPrefix = 'cp-node-';
/** Maximum time in milliseconds until the node is ready, on a slow machine that runs ten other programs. */
const readyLimitMs = 300_000;
const maxLastLines = 15;
const neverAborted = new AbortController().signal;

/** @throws ChartpilotError if a package is missing, or Error with the last lines of the programs if the node does not become ready */
export async function startNode(report: (line: string) => void = (line) => console.error(line)): Promise<RunningNode> {
  requireNodePackages();
  const binary = await findOrBuild(nodeProgram, report);
  removeAbandonedCgroups();
  removeAbandonedFolders();
  const cleanups: (() => void | Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  const programs = new Map<string, Program>();
  const lastLines = (): string =>
    [...programs.values()]
      .map(({ name, lines }) => [`${name}:`, ...lines.slice(-maxLastLines)].join('\n  '))
      .join('\n');
  try {
    const folder = mkdtempSync(join(tmpdir(), `${folderPrefix}${process.pid}-`));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    const cgroup = createCgroupParent();
    cleanups.push(() => eventually('the cgroups of the node are empty', () => isRemoved(cgroup)).then(() => {}));
    const namespaces = await NodeNamespaces.create();
    cleanups.push(() => namespaces.end());
    await configureNetwork(namespaces);
    const dialer = await NodeDialer.start(namespaces, folder);
    cleanups.push(() => dialer.stop());
    const paths = nodePaths(folder);
    const server = await startServer(namespaces, dialer, { paths, cgroup }, report);
    cleanups.push(() => server.stop());
    const run = (name: string, ...command: string[]): void => {
      const [program = '', ...args] = [...namespaces.prefix, ...command];
      const logFile = join(paths.logs, name);
      programs.set(name, Program.run(name, program, { args, cwd: folder, env: process.env, logFile }));
    };
    const start = {
      containerd: () => run('containerd', 'containerd', '-c', paths.containerd),
      kubelet: () => run('kubelet', binary, 'kubelet', ...kubeletFlags(paths)),
    };
    const restart = async (name: keyof typeof start): Promise<void> => {
      const program = programs.get(name)!;
      // The program is a child of `nsenter`, which does not forward signals.
      process.kill(childOf(program.pid)!, 'SIGKILL');
      await program.exited;
      start[name]();
    };
    start.containerd();
    run('manager', binary, 'manager', ...managerFlags(paths, server.folder));
    run(
      'scheduler',
      binary,
      'scheduler',
      `--kubeconfig=${paths.kubeconfig}`,
      '--leader-elect=false',
      '--secure-port=0',
    );
    run('kube-proxy', binary, 'kube-proxy', ...proxyFlags(paths));
    const cluster = new Cluster();
    await cluster.begin(server);
    cleanups.push(() => cluster.end());
    const runtime = { namespaces, socket: paths.containerdSocket };
    await eventually('containerd is ready', async () => {
      await namespaces.run(['ctr', '-a', paths.containerdSocket, 'version']);
      return true;
    });
    await importImage(pause(folder), paths.images, runtime);
    start.kubelet();
    const exitMessage = (): string | undefined => {
      const program = [...programs.values()].find(({ exit }) => exit !== undefined);
      return program && `${program.name} exited`;
    };
    await eventually('the node is ready', () => isNodeReady(cluster), {
      deadlineMs: readyLimitMs,
      hopeless: exitMessage,
    });
    return {
      ...{ cluster, namespaces, dialer, folder, lastLines, stop, restart },
      importImage: (image) => importImage(image, paths.images, runtime),
      importLayout: (layout) => importLayout(layout, runtime),
    };
  } catch (error) {
    const lines = lastLines();
    await stop();
    throw new Error(`the node does not run:\n${lines}`, { cause: error });
  }
}

/** A kernel removes a cgroup's members shortly after they exited. */
function isRemoved(cgroup: string): boolean {
  removeCgroupParent(cgroup);
  return true;
}

async function configureNetwork(namespaces: NodeNamespaces): Promise<void> {
  const commands = [
    'link set lo up',
    // The other end of the pair is unused: the node only needs an address other than loopback, and a default route.
    'link add node0 type veth peer name unused0',
    `addr add ${network.node}/24 dev node0`,
    `addr add ${network.nodeV6}/64 dev node0 nodad`,
    'link set node0 up',
    'link set unused0 up',
    'route add default via 10.77.0.254 dev node0',
    'route add default via fd00:77::fe dev node0',
  ];
  await namespaces.run(['ip', '-batch', '-'], `${commands.join('\n')}\n`);
  const settings = ['ipv4/ip_forward', 'ipv6/conf/all/forwarding'];
  for (const setting of settings) await namespaces.run(['sh', '-c', `echo 1 > /proc/sys/net/${setting}`]);
}

async function startServer(
  namespaces: NodeNamespaces,
  dialer: NodeDialer,
  { paths, cgroup }: { readonly paths: NodePaths; readonly cgroup: string },
  report: (line: string) => void,
): Promise<RunningApiServer> {
  const [reachedAt] = (await freePorts(1)) as [number];
  await dialer.forward(reachedAt, '127.0.0.1', network.apiServerPort);
  return startApiServer(report, [], {
    ...{ prefix: namespaces.networkPrefix, port: network.apiServerPort, reachedAt },
    hosts: [network.node, network.apiServer],
    prepare: (folder) => {
      const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
      const authority = loadAuthority(read('ca.crt'), read('ca.key'));
      const [adminToken = ''] = read('tokens.csv').split(',');
      writeNodeFiles({ paths, cgroup, adminToken, authority });
      return [
        ...['--bind-address=0.0.0.0', `--advertise-address=${network.node}`],
        `--service-cluster-ip-range=${network.services},${network.servicesV6}`,
        `--kubelet-client-certificate=${paths.clientCertificate}`,
        `--kubelet-client-key=${paths.clientKey}`,
        // The name of the node does not resolve.
        '--kubelet-preferred-address-types=InternalIP',
      ];
    },
  });
}

function managerFlags({ kubeconfig, authority }: NodePaths, serverFolder: string): string[] {
  return [
    ...[`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0', `--root-ca-file=${authority}`],
    `--service-account-private-key-file=${join(serverFolder, 'accounts.key')}`,
  ];
}

function proxyFlags({ kubeconfig }: NodePaths): string[] {
  return [
    ...[`--kubeconfig=${kubeconfig}`, `--hostname-override=${nodeName}`, '--proxy-mode=iptables'],
    `--cluster-cidr=${network.pods},${network.podsV6}`,
    // These settings affect the machine, not only the node.
    ...['--conntrack-max-per-core=0', '--conntrack-tcp-timeout-established=0', '--conntrack-tcp-timeout-close-wait=0'],
  ];
}

function kubeletFlags(paths: NodePaths): string[] {
  return [
    ...[`--kubeconfig=${paths.kubeconfig}`, `--config=${paths.kubeletConfig}`, `--root-dir=${paths.kubelet}`],
    ...[`--cert-dir=${join(paths.kubelet, 'pki')}`, `--hostname-override=${nodeName}`],
    `--node-ip=${network.node},${network.nodeV6}`,
  ];
}

/** An image whose only process sleeps; containerd ends it with SIGKILL. */
function pause(folder: string): Image {
  const root = join(folder, 'pause');
  mkdirSync(root);
  copyFileSync(findExecutable('busybox', process.env)!, join(root, 'busybox'));
  return { name: pauseImage, root, entrypoint: ['/busybox', 'sleep', '2147483647'], user: '65535:65535' };
}

async function isNodeReady(cluster: Cluster): Promise<boolean> {
  const node = await cluster.admin.request({ method: 'GET', resource: resources.Node, name: nodeName }, neverAborted);
  return hasCondition(node, 'Ready');
}

/** Removes folders of killed test runs. */
function removeAbandonedFolders(): void {
  for (const name of readdirSync(tmpdir())) {
    const owner = Number(new RegExp(`^${folderPrefix}(\\d+)-`).exec(name)?.[1]);
    if (owner > 0 && !isAlive(owner)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}
