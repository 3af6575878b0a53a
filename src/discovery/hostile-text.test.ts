/** Sends hostile text to each input of a complete control plane: a client of the plaintext port, objects, and file names. */

import { afterEach, expect, it } from 'vitest';
import { typeUrls } from '../../test/ads-client.ts';
import { hostileCharacters, hostileText } from '../../test/fixtures/hostile-text.ts';
import { ControlPlane, serviceEntry, sidecar, stopControlPlanes } from '../../test/harness/control-plane.ts';
import { eventually } from '../../test/harness/eventually.ts';
import { linesOf } from '../../test/harness/logged-line.ts';

afterEach(stopControlPlanes);

/** A protobuf string contains no lone surrogate. */
const wireText = hostileText.toWellFormed();
/** A quoted YAML scalar. */
const quotedText = JSON.stringify(hostileText);

async function expectVisiblePages(plane: ControlPlane): Promise<void> {
  const list = (await plane.get('/debug/list')).json() as { pages?: string[] } | string[];
  const pages = (Array.isArray(list) ? list : (list.pages ?? []))
    .map(String)
    .filter((page) => !/pprof|trace/.test(page));
  expect(pages.length).toBeGreaterThan(10);
  for (const page of [...pages.map((name) => (name.startsWith('/') ? name : `/debug/${name}`)), '/metrics']) {
    const { text } = await plane.get(page);
    expect(text, page).not.toMatch(hostileCharacters);
    expect(text, page).not.toMatch(/^forged/m);
  }
  expect(plane.lines.join('\n')).not.toMatch(hostileCharacters);
  expect(plane.lines.filter((line) => line.startsWith('forged'))).toEqual([]);
}

it('a client that rejects a response adds no control characters to the log, the pages or the metrics', async () => {
  const plane = await ControlPlane.serving();
  const { stream } = await plane.subscribe();
  const errorDetail = { code: 13, message: `no such filter ${wireText}` };
  stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce, errorDetail });
  await eventually('the rejection is logged', () => linesOf(plane.lines, 'request.judged.rejection').length > 0);
  expect(linesOf(plane.lines, 'request.judged.rejection')[0]).toContain('no such filter \\u001b[2J');
  await expectVisiblePages(plane);
  expect((await plane.get('/metrics')).text).toContain('err="no such filter \\\\x1b[2J');
  expect((await plane.get('/debug/syncz')).status).toBe(200);
});

it('a node with a hostile ID, cluster and metadata adds no control characters to the log, the pages or its status', async () => {
  const plane = await ControlPlane.serving();
  const client = plane.client('ads.listening');
  for (const node of [
    { ...sidecar, id: `sidecar~127.0.0.1~web-${wireText}.shop~shop.svc.cluster.local` },
    { ...sidecar, id: wireText },
    { ...sidecar, cluster: wireText, metadata: { ...sidecar.metadata, NAMESPACE: wireText, [wireText]: wireText } },
    { ...sidecar, metadata: { ...sidecar.metadata, LABELS: { [wireText]: wireText } } },
  ]) {
    const stream = client.sotw();
    stream.send({ node, typeUrl: typeUrls.CDS });
    const status = await Promise.race([
      stream.ended,
      stream.next().then(
        () => undefined,
        () => undefined,
      ),
    ]);
    expect(status?.details ?? '').not.toMatch(hostileCharacters);
    stream.send({ typeUrl: wireText, resourceNames: [wireText] });
  }
  await expectVisiblePages(plane);
});

it('an object with a hostile kind, name, namespace, host or URI adds no control characters to the log or the pages', async () => {
  const plane = await ControlPlane.serving(
    {},
    {
      'cart.yaml': serviceEntry(),
      'kind.yaml': `apiVersion: networking.istio.io/v1\nkind: ${quotedText}\nmetadata: {name: a, namespace: shop}\nspec: {}\n`,
      'name.yaml': serviceEntry().replace(/name: \w+/, `name: ${quotedText}`),
      'host.yaml': `apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: h, namespace: shop}\nspec: {hosts: [${quotedText}], ports: [{number: 80, name: ${quotedText}, protocol: ${quotedText}}], resolution: STATIC}\n`,
      'uri.yaml': `apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web, namespace: shop, labels: {${quotedText}: ${quotedText}}}\nspec: {hosts: [cart.example.com], http: [{name: ${quotedText}, match: [{uri: {exact: ${quotedText}}}], route: [{destination: {host: cart.example.com}}]}]}\n`,
      'field.yaml': `apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: field, namespace: shop}\nspec: {${quotedText}: 1, hosts: [a.example.com]}\n`,
      [`${hostileText.replaceAll('/', '').toWellFormed()}.yaml`]: 'kind: [',
    },
  );
  await plane.subscribe();
  expect(plane.troubles().length).toBeGreaterThan(3);
  expect(plane.lines.join('\n')).toMatch(/\\x1b\[2J|\\u001b\[2J/);
  await expectVisiblePages(plane);
});
