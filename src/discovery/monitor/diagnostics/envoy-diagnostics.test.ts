import { describe, expect, it } from 'vitest';
import { givenMesh, givenProxy } from '../../../../test/fixtures/given-mesh.ts';
import type { EnvoyBuild } from '../../../model/node/envoy-build.ts';
import { shapeOf } from '../../../model/proxy/proxy-shape.ts';
import { diagnosticsOf } from './push-status.ts';

const { context, configs } = givenMesh(`
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: { name: counts, namespace: shop }
spec: { url: "file:///a.wasm" }
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: own, namespace: shop }
spec:
  configPatches:
    - applyTo: HTTP_FILTER
      match: { context: GATEWAY }
      patch: { operation: INSERT_FIRST, value: &code { name: a, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm, config: {} } } }
    - applyTo: HTTP_FILTER
      match: { context: SIDECAR_INBOUND, proxy: { metadata: { RUNS: this } } }
      patch: { operation: INSERT_FIRST, value: *code }
`);

interface TestProxy {
  readonly ip: string;
  readonly envoy?: EnvoyBuild;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

function diagnosticsFor(...nodes: readonly TestProxy[]) {
  const proxies = nodes.map((node) => {
    const proxy = givenProxy({ namespace: 'shop', ...node });
    return { proxy, shape: shapeOf(proxy, context), context };
  });
  const state = { context, configs: { set: configs }, unreadable: new Map() } as never;
  const { pilot_unsupported_envoys: unsupported, pilot_wasm_withheld: withheld } = diagnosticsOf(state, proxies);
  return { unsupported, withheld };
}

const oldBuild: EnvoyBuild = { version: [1, 36, 2], hasV8: true };

describe('push_status for features that an Envoy version lacks', () => {
  it('names each object whose Wasm code is withheld because of the version, with the number of proxies', () => {
    const { withheld, unsupported } = diagnosticsFor(
      { ip: '10.0.0.1', envoy: oldBuild },
      { ip: '10.0.0.2', envoy: oldBuild },
    );
    expect(unsupported).toEqual({});
    expect(withheld).toEqual({
      'WasmPlugin shop/counts 1.36.2': {
        objects: ['WasmPlugin/shop/counts'],
        message: expect.stringMatching(
          /not sent to 2 proxies, such as sidecar~10\.0\.0\.1~.*: Envoy 1\.36\.2 may crash/,
        ),
      },
    });
  });

  it('names an EnvoyFilter only if its Wasm patch matches the proxy', () => {
    const { withheld } = diagnosticsFor({ ip: '10.0.0.1', envoy: oldBuild, metadata: { RUNS: 'this' } });
    expect(Object.keys(withheld!)).toEqual(['WasmPlugin shop/counts 1.36.2', 'EnvoyFilter shop/own 1.36.2']);
  });

  it('names each unsupported Envoy version once', () => {
    const nodes = [35, 35, 41, 40].map((minor, i) => ({
      ip: `10.0.0.${i + 1}`,
      envoy: { version: [1, minor, 0], hasV8: true } as const,
    }));
    expect(diagnosticsFor(...nodes).unsupported).toEqual({
      '1.35.0': {
        message: expect.stringMatching(/^2 proxies, such as sidecar~10\.0\.0\.1~.*: Envoy 1\.35\.0 is older/),
      },
      '1.41.0': { message: expect.stringMatching(/^sidecar~10\.0\.0\.3~.*: Envoy 1\.41\.0 is newer/) },
    });
  });

  it('is empty if a proxy supports Wasm or its Envoy version is unknown', () => {
    expect(diagnosticsFor({ ip: '10.0.0.1' }, { ip: '10.0.0.2', envoy: { version: [1, 40, 0], hasV8: true } })).toEqual(
      {
        unsupported: {},
        withheld: {},
      },
    );
  });
});
