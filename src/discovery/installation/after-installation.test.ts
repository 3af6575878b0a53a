import * as E from 'fp-ts/lib/Either.js';
import { expect, test } from 'vitest';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import { checkAfterInstallation } from './after-installation.ts';
import type { ClusterFacts, InstalledFacts, PodFacts } from './cluster-facts.ts';

const namespace = 'istio-system';
const shop = { metadata: { name: 'shop', labels: { 'istio-injection': 'enabled' } } };

function podWith(image: string, annotations: Readonly<Record<string, string>> = {}): PodFacts {
  return { metadata: { name: 'web', annotations }, spec: { containers: [{ name: 'istio-proxy', image }] } };
}

/**
 * Findings about sidecar versions in namespace `shop`.
 *
 * @param global values of the Helm chart
 * @param injectedPod a new pod of the namespace
 */
function versions(global: object, pods: readonly PodFacts[], injectedPod?: PodFacts): string[] {
  const injector = { metadata: { name: 'istio-sidecar-injector' }, data: { values: JSON.stringify({ global }) } };
  const entry = { name: 'namespace.sidecar-injector.istio.io', clientConfig: { url: 'https://istiod.test/inject' } };
  const mutating = { metadata: { name: 'ours', labels: { [revisionLabel]: 'default' } }, webhooks: [entry] };
  const none = E.right([]);
  const facts: ClusterFacts = {
    ...{ version: E.right('v1.36.3'), groups: E.right(new Map()), definitions: none, nodes: none, deployments: none },
    ...{ validatingWebhooks: none, namespaces: E.right([shop]), mutatingWebhooks: E.right([mutating]) },
  };
  const installed: InstalledFacts = {
    ...{ slices: none, rootOfMesh: E.right(undefined), injector: E.right(injector) },
    pods: new Map([['shop', E.right(pods)]]),
    admittedPods: new Map(injectedPod ? [['shop', E.right(injectedPod)]] : []),
  };
  return checkAfterInstallation(facts, installed, { namespace, revision: '' }, 0)
    .filter(({ check }) => check === 'versions')
    .map(({ level, message }) => `${level}: ${message}`);
}

const values = { hub: 'a.test', tag: '1', proxy: { image: 'agent' } };

test.each([
  ['variant "default", which adds nothing to the tag', { ...values, variant: 'default' }, 'a.test/agent:1'],
  ['another variant', { ...values, variant: 'distroless' }, 'a.test/agent:1-distroless'],
  [
    'a variant that replaces that of the tag',
    { ...values, tag: '1-debug', variant: 'distroless' },
    'a.test/agent:1-distroless',
  ],
  [
    'variant "default" with a tag that contains another variant',
    { ...values, tag: '1-distroless', variant: 'default' },
    'a.test/agent:1',
  ],
])('the check compares sidecars with the image that the injector uses for %s', (_, global, image) => {
  expect(versions(global, [podWith(image)])).toEqual([`ok: all sidecars run ${image}`]);
  expect(versions(global, [podWith(`${image}-old`)])).toEqual([
    `warning: shop: 1 sidecars run ${image}-old; new ones get ${image}`,
  ]);
});

test('the check compares sidecars with the image of new pods if a ProxyConfig selects the image type', () => {
  const injectedPod = podWith('a.test/agent:1-distroless');
  expect(versions(values, [podWith('a.test/agent:1-distroless')], injectedPod)).toEqual([
    'ok: all sidecars run a.test/agent:1-distroless',
  ]);
  expect(versions(values, [podWith('a.test/agent:1')], injectedPod)).toEqual([
    'warning: shop: 1 sidecars run a.test/agent:1; new ones get a.test/agent:1-distroless',
  ]);
});

test('the check skips pods whose image is set by an annotation', () => {
  const annotatedPod = podWith('b.test/agent:0', { 'sidecar.istio.io/proxyImage': 'b.test/agent:0' });
  expect(versions(values, [annotatedPod])).toEqual(['ok: all sidecars run a.test/agent:1']);
});
