/** CoreDNS as a process of the node, with the Service `kube-dns`, so that `http://server` resolves in pods. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clusterDns, findOrBuild } from '../cluster/go-program.ts';
import { eventually } from '../harness/eventually.ts';
import { Program } from '../harness/program.ts';
import { clusterDomain, network, nodePaths } from './node-configuration.ts';
import { get } from './node-request.ts';
import type { RunningNode } from './start-node.ts';
import { applyManifests } from './workloads.ts';

const readyPort = 8181;

/**
 * A second domain with the names of all Services, unknown to the mesh: hosts outside of the mesh. Such a Service has the annotation
 * `networking.istio.io/exportTo: "~"`.
 */
export const outsideDomain = 'outside.example';

/** The Service has no selector, because the server is a process of the node and not a pod. */
const service = `
apiVersion: v1
kind: Service
metadata: { name: kube-dns, namespace: kube-system }
spec:
  clusterIP: ${network.dns}
  ports: [{ name: dns, port: 53, protocol: UDP }, { name: dns-tcp, port: 53, protocol: TCP }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: kube-dns, namespace: kube-system, labels: { kubernetes.io/service-name: kube-dns } }
addressType: IPv4
ports: [{ name: dns, port: 53, protocol: UDP }, { name: dns-tcp, port: 53, protocol: TCP }]
endpoints: [{ addresses: [${network.node}] }]
`;

/** Starts the server, which exits with the node. */
export async function startClusterDns(
  node: RunningNode,
  report: (line: string) => void = (line) => console.error(line),
) {
  const binary = await findOrBuild(clusterDns, report);
  const { folder, namespaces } = node;
  const { kubeconfig, logs } = nodePaths(folder);
  const file = join(folder, 'Corefile');
  const plugins = [
    `ready ${network.node}:${readyPort}`,
    'errors',
    'cache 1',
    `kubernetes ${clusterDomain} ${outsideDomain} in-addr.arpa {\n    kubeconfig ${kubeconfig} test\n  }`,
  ];
  writeFileSync(file, `.:53 {\n  ${plugins.join('\n  ')}\n}\n`);
  const [executable = '', ...args] = [...namespaces.prefix, binary, '-conf', file];
  const logFile = join(logs, 'cluster-dns');
  const program = Program.run('CoreDNS', executable, { args, cwd: folder, env: process.env, logFile });
  await applyManifests(node, service);
  const url = `http://${network.node}:${readyPort}/ready`;
  await eventually('CoreDNS is ready', async () => (await get(node, url)).status === 200, {
    hopeless: () => program.hopeless(),
  });
}
