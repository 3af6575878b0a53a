/** The API server of the cluster that we run in, as the service account of our pod. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterAccess } from './cluster-access.ts';
import { noCredentials, readCredentialFile, TokenFile } from './credential-file.ts';

/** Where every pod finds its service account. */
const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Whether this process runs in a pod: the kubelet says where the API server is. */
export function isInCluster(env: NodeJS.ProcessEnv): boolean {
  return Boolean(env.KUBERNETES_SERVICE_HOST) && Boolean(env.KUBERNETES_SERVICE_PORT);
}

/** @throws ApiError `credentials` when this process runs in no pod */
export function inClusterAccess(env: NodeJS.ProcessEnv, folder: string = serviceAccountFolder): ClusterAccess {
  if (!isInCluster(env)) {
    throw noCredentials(
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this process does not run in a pod; set --kubeconfig',
    );
  }
  const host = env.KUBERNETES_SERVICE_HOST!;
  const server = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT}`);
  const tokens = new TokenFile(join(folder, 'token'));
  return {
    server,
    tls: async () => ({ ca: readCredentialFile(join(folder, 'ca.crt')) }),
    headers: async () => ({ authorization: `Bearer ${tokens.token()}` }),
    refused: () => tokens.refused(),
  };
}

/** The namespace of our pod; undefined where there is none. */
export function ownNamespace(folder: string = serviceAccountFolder): string | undefined {
  try {
    return readFileSync(join(folder, 'namespace'), 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
