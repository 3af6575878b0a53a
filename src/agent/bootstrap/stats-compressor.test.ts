import { expect, onTestFinished, test } from 'vitest';
import { type GeneratedBootstrap, generateBootstrap } from '../../../test/fixtures/generated-bootstrap.ts';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { startEnvoyWith } from '../../../test/networking/ads-envoy.ts';

function annotated(compression: string, port = 15090): GeneratedBootstrap {
  return generateBootstrap({
    env: { ENVOY_PROMETHEUS_PORT: String(port), ENVOY_STATUS_PORT: '0' },
    files: { 'etc/istio/pod/annotations': `sidecar.istio.io/statsCompression="${compression}"\n` },
  });
}

test.each([
  ['gzip', 'gzip'],
  ['brotli', 'br'],
  ['zstd', 'zstd'],
])(
  "compresses Envoy's metrics with %s if the annotation statsCompression selects it",
  async (compression, encoding) => {
    const port = await freePort();
    const { node, static_resources } = annotated(compression, port).bootstrap;
    const envoy = await startEnvoyWith({ node, static_resources });
    onTestFinished(envoy.stop);
    await eventually('Envoy is live', async () => expect((await envoy.admin('/ready')).trim()).toBe('LIVE'));
    // The admin port differs here, so the response is an error, which is compressed too.
    const { headers, body } = await fetch(`http://127.0.0.1:${port}/stats/prometheus`, {
      headers: { 'accept-encoding': encoding },
    });
    await body?.cancel();
    expect(headers.get('content-encoding')).toBe(encoding);
  },
);

test('warns about an unknown compression and leaves metrics uncompressed', () => {
  const { bootstrap, warnings } = annotated('lz4');
  expect(JSON.stringify(bootstrap.static_resources)).not.toContain('compressor');
  expect(warnings).toEqual([
    {
      ...{ event: 'option.ignored', setting: 'annotation sidecar.istio.io/statsCompression', value: 'lz4' },
      reason: 'must be one of gzip, brotli, zstd',
    },
  ]);
});
