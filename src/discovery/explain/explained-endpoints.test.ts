import { expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { explain } from '../../networking/explain/explain.ts';
import { generatedConfiguration } from './generated.ts';
import { ConfigOrigins } from './sources.ts';
import { describeExplanation, explanationText } from './text.ts';

it('explain lists why endpoints are missing in a cluster', () => {
  const { context } = givenMesh(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  addresses: [10.99.0.20]
  resolution: STATIC
  ports: [{ number: 8100, name: http, protocol: HTTP }]
  workloadSelector: { labels: { app: vm } }
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: vm1, namespace: shop }
spec: { address: vm.internal, labels: { app: vm } }
`);
  const explanation = explain(generatedConfiguration(givenShape({ namespace: 'shop' }, context), context), {
    direction: 'outbound',
    destination: { address: '10.99.0.20', port: 8100 },
    http: { version: 'HTTP/1.1', authority: 'web.test:8100', path: '/', method: 'GET', headers: {} },
  });
  const textLines = describeExplanation(explanation, new ConfigOrigins(() => undefined));
  const cluster = textLines.steps.find(({ what }) => what === 'cluster');
  expect(cluster).toMatchObject({
    note: 'no endpoints',
    missingEndpoints: ['1 of 1 are host names, which only resolution DNS resolves: vm.internal:8100'],
  });
  expect(explanationText('', textLines)).toContain('endpoints: 1 of 1 are host names');
});
