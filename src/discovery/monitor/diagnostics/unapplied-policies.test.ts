import { expect, it } from 'vitest';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { diagnosticsOf } from './push-status.ts';

const policy = (kind: string, name: string, spec: string): string => `apiVersion: security.istio.io/v1
kind: ${kind}
metadata: { name: ${name}, namespace: shop }
spec: ${spec}
`;

it('push_status lists each policy that applies to no connected proxy, with its selector', () => {
  const plane = givenPlane(
    [
      policy('AuthorizationPolicy', 'web', '{ selector: { matchLabels: { app: web } } }'),
      policy('AuthorizationPolicy', 'odd', '{ selector: { matchLabels: { app: Web } } }'),
      policy(
        'AuthorizationPolicy',
        'attached',
        '{ targetRef: { group: gateway.networking.k8s.io, kind: Gateway, name: front } }',
      ),
      policy('PeerAuthentication', 'all', '{ mtls: { mode: STRICT } }'),
      policy('RequestAuthentication', 'tokens', '{ selector: { matchLabels: { app: api } } }'),
    ].join('---\n'),
  );
  const id = 'sidecar~10.9.0.1~web.shop~shop.svc.cluster.local';
  plane.connect({ id, cluster: 'web', metadata: { NAMESPACE: 'shop', LABELS: { app: 'web' } } }, []);
  const withoutWorkload = diagnosticsOf(plane.state, plane.resources.nodes).pilot_policies_without_workload ?? {};
  expect(
    Object.entries(withoutWorkload)
      .map(([key, { message }]) => `${key}: ${message.split(',')[0]}`)
      .sort(),
  ).toEqual([
    'AuthorizationPolicy shop/attached: applies to no connected proxy: there is no proxy of namespace shop that implements Gateway front',
    'AuthorizationPolicy shop/odd: applies to no connected proxy: there is no proxy of namespace shop with app=Web',
    'RequestAuthentication shop/tokens: applies to no connected proxy: there is no proxy of namespace shop with app=api',
  ]);
});
