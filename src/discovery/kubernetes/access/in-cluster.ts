import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterAccess } from './cluster-access.ts';
import { credentialsError, readCredentialFile, TokenFile } from './credential-file.ts';

const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** In a pod, the kubelet sets the API server's address in the environment. */
export function isInCluster(env: NodeJS.ProcessEnv): boolean {
  return Boolean(env.KUBERNETES_SERVICE_HOST) && Boolean(env.KUBERNETES_SERVICE_PORT);
}

/** @throws ApiError `credentials` if this process does not run in a pod */
export function inClusterAccess(env: NodeJS.ProcessEnv, folder: string = serviceAccountFolder): ClusterAccess {
  if (!isInCluster(env)) {
    throw credentialsError(
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
    invalidateCredentials: () => tokens.invalidate(),
  };
}

export function podNamespace(folder: string = serviceAccountFolder): string | undefined {
  try {
    return readFileSync(join(folder, 'namespace'), 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}
