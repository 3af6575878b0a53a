/** A running control plane logs warnings that the diagnostics find. */
import { afterEach, expect, test } from 'vitest';
import { ControlPlane, serviceEntry, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { linesOf } from '../../../../test/harness/logged-line.ts';

afterEach(stopControlPlanes);

const routes = (subset: string): string => `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  http: [{route: [{destination: {host: cart.example.com, subset: ${subset}}}]}]
`;

test('a route to a subset that no DestinationRule defines is logged with file, field and code, once for each version', async () => {
  const plane = await ControlPlane.serving();
  plane.write('cart.yaml', serviceEntry());
  plane.write('routes.yaml', routes('v2'));
  const lines = () =>
    linesOf(plane.lines, 'object.warned', { object: 'VirtualService shop/cart', code: 'SUBSET_NOT_FOUND' });
  await eventually('the warning is logged', () => lines().length === 1);
  expect(lines()[0]).toMatch(
    /place=\S+routes\.yaml:1 .*spec\.http\[0\]\.route\[0\]\.destination\.subset: no DestinationRule/,
  );
  plane.write('routes.yaml', routes('v3'));
  await eventually('the next version is logged', () => lines().length === 2);
});
