/** Memory requests of the chart: the formula of docs/scaling.md. */
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { replicaResources } from '../bench/scaling/scaling-model.ts';
import { givenHelm } from './given-helm.ts';

const { render } = givenHelm();

interface Deployment extends KubernetesObject {
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly Container[] } } };
}

interface Container {
  readonly resources: Readonly<Record<'requests' | 'limits', Readonly<Record<string, string>>>>;
  readonly env: readonly { readonly name: string }[];
}

async function containerWith(...values: string[]): Promise<Container> {
  const objects = await render('istio-system', '--set', 'image.repository=registry.test/discovery', ...values);
  const deployment = objects.find(({ kind }) => kind === 'Deployment') as Deployment;
  return deployment.spec.template.spec.containers[0]!;
}

const sizing = (proxies: number, services: number, namespaces: number): string =>
  `sizing.proxies=${proxies},sizing.services=${services},sizing.namespaces=${namespaces}`;

describe('the memory request of the control plane', () => {
  it.each([
    [5_000, 200, 1],
    [60_000, 5_000, 300],
  ])('is derived from %i proxies, %i services and %i namespaces', async (proxies, services, namespaces) => {
    const mesh = { proxies, services, seen: services, namespaces, endpointChanges: 0, routeChanges: 0, hasTls: true };
    const { requestMib, limitMib } = replicaResources(mesh, proxies);
    const { resources } = await containerWith('--set', sizing(proxies, services, namespaces));
    expect(resources).toEqual({
      requests: { cpu: '200m', memory: `${requestMib}Mi` },
      limits: { memory: `${limitMib}Mi` },
    });
  });

  it('is 512 MiB by default, with a limit of 1 GiB that the program knows', async () => {
    const { resources, env } = await containerWith();
    expect(resources).toEqual({ requests: { cpu: '200m', memory: '512Mi' }, limits: { memory: '1024Mi' } });
    expect(env.map(({ name }) => name)).toContain('CHARTPILOT_MEMORY_LIMIT_BYTES');
  });

  it('equals the value of `resources` if set', async () => {
    const { resources } = await containerWith('--set', 'resources.limits.memory=3Gi,resources.limits.cpu=2');
    expect(resources).toEqual({
      requests: { cpu: '200m', memory: '512Mi' },
      limits: { cpu: 2, memory: '3Gi' },
    });
  });
});
