/** Tests which namespaces of a cluster are watched. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../runtime/output/log.ts';
import { makeCluster } from './make-cluster.ts';

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: one
contexts: [{ name: one, context: { cluster: one, user: one } }]
clusters: [{ name: one, cluster: { server: "https://127.0.0.1:1" } }]
users: [{ name: one, user: { token: t } }]
`;

/** Names of all watched resources. */
function watchedResources(clusterRegistriesNamespace: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'followed-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, kubeconfig);
  const cluster = makeCluster(
    {
      ...{ kubeconfig: file, registries: ['Kubernetes'], configDir: '', pod: {}, podName: 'pilot-0', revision: '' },
      ...{
        namespace: 'mesh',
        clusterRegistriesNamespace,
        sharedMeshConfig: '',
        authority: undefined,
        rootConfigMap: 'istio-ca-root-cert',
        webhooksAddress: undefined,
      },
    },
    createLogger({ write: () => {} }),
  )!;
  return cluster.input.resources;
}

test('Secrets of remote clusters are read from the namespace that the flag specifies', () => {
  expect(watchedResources('mesh')).toContain('v1/secrets/mesh/istio/multiCluster');
  expect(watchedResources('clusters')).toContain('v1/secrets/clusters/istio/multiCluster');
  expect(watchedResources('clusters')).not.toContain('v1/secrets/mesh/istio/multiCluster');
});
