import { expect, it } from 'vitest';
import { validateFiles } from './validate-files.ts';

const gateway = (name: string, mode: string, hosts: string, selector = 'edge') => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: ${name}, namespace: shop, creationTimestamp: "2026-01-0${name.length}T00:00:00Z" }
spec:
  selector: { istio: ${selector} }
  servers: [{ port: { number: 443, name: https, protocol: HTTPS }, hosts: [${hosts}], tls: { mode: ${mode}, credentialName: web } }]
---`;

async function warnings(...documents: string[]): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: documents.join('') }]);
  return problems
    .filter(({ code }) => code === 'SERVER_NOT_SERVED')
    .map(({ object, message }) => `${object}: ${message}`);
}

it('validate warns about a TLS server if a server of another Gateway has the same host', async () => {
  const serverWarnings = await warnings(gateway('g', 'SIMPLE', 'x.test'), gateway('g2', 'MUTUAL', 'x.test, y.test'));
  expect(serverWarnings.length).toBeGreaterThan(0);
  expect(serverWarnings.join('\n')).toMatch(/^Gateway shop\/g2?: server https: .*x\.test/);
});

it('validate accepts TLS servers with different hosts or on different gateways', async () => {
  expect(await warnings(gateway('g', 'SIMPLE', 'x.test'), gateway('g2', 'MUTUAL', 'y.test'))).toEqual([]);
  expect(await warnings(gateway('g', 'SIMPLE', 'x.test'), gateway('g2', 'MUTUAL', 'x.test', 'other'))).toEqual([]);
  expect(await warnings(gateway('g', 'ISTIO_MUTUAL', 'x.test').replace(', credentialName: web', ''))).toEqual([]);
});

it('validate warns about a wildcard server or listener if another one has stricter TLS for one of its hosts', async () => {
  expect(await warnings(gateway('g', 'SIMPLE', '"*.x.test"'), gateway('g2', 'MUTUAL', 'a.x.test'))).toEqual([
    'Gateway shop/g: server https: requests for a.x.test get 421 over connections of this server, which has mode SIMPLE instead of MUTUAL of shop/g2',
  ]);
  const listener = (name: string, hostname: string, options = '') =>
    `{ name: ${name}, port: 443, protocol: HTTPS, hostname: "${hostname}", tls: { certificateRefs: [{ name: web }]${options} } }`;
  const mutual = ', options: { gateway.istio.io/tls-terminate-mode: MUTUAL }';
  const serverWarnings = await warnings(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: front, namespace: shop }
spec: { gatewayClassName: istio, listeners: [${listener('wide', '*.x.test')}, ${listener('narrow', 'a.x.test', mutual)}] }
`);
  expect(serverWarnings).toEqual([
    expect.stringMatching(/^Gateway shop\/front: server .*requests for a\.x\.test get 421/),
  ]);
});
