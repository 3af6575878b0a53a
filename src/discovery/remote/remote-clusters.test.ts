import { expect, it, onTestFinished } from 'vitest';
import { createActor } from 'xstate';
import { respondJson, scriptedApiServer } from '../../../test/fixtures/scripted-api-server.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { defaultRegistryOptions } from '../../model/services/service-registry.ts';
import { createLogger } from '../../runtime/output/log.ts';
import { tokenReviews } from '../kubernetes/api-resource.ts';
import { ObjectStore } from '../kubernetes/store/object-store.ts';
import { RemoteClusters } from './remote-clusters.effects.ts';

/** Secrets that define clusters, set by the test. */
function createClusters() {
  const store = new ObjectStore();
  let notifyChanged = (): void => {};
  const remotes = new RemoteClusters({
    secrets: {
      store,
      onChanged: (listener) => {
        notifyChanged = listener;
      },
    },
    ...{ ownCluster: 'own', settings: () => defaultRegistryOptions, log: createLogger({ write: () => {} }) },
  });
  const chart = createActor(remotes.machine()).start();
  onTestFinished(() => void chart.stop());
  const object = { metadata: { name: 'remotes', namespace: 'istio-system', uid: 'a' } };
  return {
    remotes,
    setSecrets(kubeconfigs: Readonly<Record<string, string>>): void {
      const data = Object.fromEntries(
        Object.entries(kubeconfigs).map(([id, text]) => [id, Buffer.from(text).toString('base64')]),
      );
      store.apply({ type: 'MODIFIED', object: { ...object, data } });
      notifyChanged();
    },
  };
}

async function startServer(name: string) {
  const server = await scriptedApiServer((stream, path) => {
    if (path.includes('tokenreviews')) respondJson(stream, { metadata: { name } });
    else respondJson(stream, {}, { ':status': 503 });
  });
  onTestFinished(() => server.close());
  const { ca = '' } = await server.access.tls(new AbortController().signal);
  const cluster = {
    server: server.access.server.href,
    'certificate-authority-data': Buffer.from(ca).toString('base64'),
  };
  return JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'c', user: { token: 't' } }],
  });
}

it('requests to a remote cluster use its active kubeconfig, and end when no Secret defines the cluster any longer', async () => {
  const { remotes, setSecrets } = createClusters();
  const requestTo = async (cluster: string): Promise<string | undefined> => {
    const order = { method: 'POST', resource: tokenReviews, body: {} } as const;
    return (await remotes.serverOf(cluster)?.request(order, new AbortController().signal))?.metadata.name;
  };
  expect(await requestTo('c2')).toBeUndefined();
  setSecrets({ c2: await startServer('two'), c3: await startServer('three') });
  expect(await requestTo('c2')).toBe('two');
  expect(await requestTo('c3')).toBe('three');
  expect(await requestTo('own')).toBeUndefined();
  // The previous kubeconfig was never active, so nothing was read with it.
  setSecrets({ c2: await startServer('another') });
  await eventually('it is the other one', async () => (await requestTo('c2')) === 'another');
  expect(await requestTo('c3')).toBeUndefined();
});
