/** A server outside the mesh: a process of the node, whose address and name are in no registry of the mesh. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority } from '../../certs/authority.ts';
import { Program } from '../../harness/program.ts';
import { outsideDomain } from '../cluster-dns.ts';
import type { RunningNode } from '../start-node.ts';
import { applyManifests } from '../workloads.ts';
import { programs } from './sample-images.ts';

const namespace = 'outside';
export const outsideHost = `www.${namespace}.svc.${outsideDomain}`;
export const outsideAddress = '10.77.0.2';

/** Only the name server uses this Service: `exportTo` hides it from the mesh. */
const manifests = `
{ apiVersion: v1, kind: Namespace, metadata: { name: ${namespace} } }
---
apiVersion: v1
kind: Service
metadata: { name: www, annotations: { networking.istio.io/exportTo: '~' } }
spec: { clusterIP: None, ports: [{ name: http, port: 80 }, { name: https, port: 443 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: www, labels: { kubernetes.io/service-name: www } }
addressType: IPv4
ports: [{ name: http, port: 80 }, { name: https, port: 443 }]
endpoints: [{ addresses: [${outsideAddress}] }]
`;

/** Serves httpbin over HTTP and HTTPS. It exits with the node. */
export async function startOutsideServer(node: RunningNode): Promise<void> {
  const { folder, namespaces } = node;
  const { privateKey, certificate } = createAuthority().issue([outsideHost]);
  const files = { key: join(folder, 'outside.key'), certificate: join(folder, 'outside.crt') };
  writeFileSync(files.key, privateKey);
  writeFileSync(files.certificate, certificate);
  await namespaces.run(['ip', 'address', 'replace', `${outsideAddress}/24`, 'dev', 'node0']);
  const ports = ['--http', '80', '--https', '443', files.key, files.certificate];
  const [program = '', ...args] = [...namespaces.prefix, process.execPath, join(programs, 'httpbin.ts'), ...ports];
  Program.run('outside', program, { args, cwd: folder, env: process.env });
  await applyManifests(node, manifests, namespace);
}
