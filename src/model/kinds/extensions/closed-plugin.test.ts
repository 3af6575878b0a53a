import { describe, expect, it } from 'vitest';
import { readConfigObject } from '../../config/config-file.ts';

/** Returns the placeholders for a plugin with an invalid digest. */
function standIns(spec: object, namespace = 'shop') {
  const object = {
    ...{ apiVersion: 'extensions.istio.io/v1alpha1', kind: 'WasmPlugin', metadata: { name: 'auth', namespace } },
    spec: { url: 'oci://example.com/auth', sha256: 'ABC', ...spec },
  };
  const read = readConfigObject('k8s://', object, { creationTimestamp: 0 });
  expect(read.config).toBeUndefined();
  return read.standIns;
}

describe('the placeholder for a rejected WasmPlugin', () => {
  const selector = { matchLabels: { app: 'web' } };

  it.each(['AUTHN', 'AUTHZ'])('denies everything that the plugin in phase %s would process', (phase) => {
    const match = [{ mode: 'SERVER', ports: [{ number: 80 }] }];
    expect(standIns({ phase, selector, match })).toMatchObject([
      {
        ...{ kind: 'WasmPlugin', namespace: 'shop', name: 'auth' },
        spec: { phase, selector: { app: 'web' }, match, url: 'oci://refused' },
        standsFor: { effect: expect.stringContaining('the workloads of namespace shop with app=web') },
      },
    ]);
    expect(standIns({ phase, failStrategy: 'FAIL_CLOSE' })).toHaveLength(1);
  });

  it('does not exist if the plugin denies nothing', () => {
    expect(standIns({})).toEqual([]);
    expect(standIns({ phase: 'STATS' })).toEqual([]);
    expect(standIns({ phase: 'UNSPECIFIED_PHASE' })).toEqual([]);
    expect(standIns({ phase: 'AUTHN', failStrategy: 'FAIL_OPEN' })).toEqual([]);
  });

  it('is as strict as possible if the plugin is unreadable', () => {
    expect(standIns({ phase: 'Auth' })).toMatchObject([{ spec: { phase: 'AUTHN' } }]);
    expect(standIns({ phse: 'AUTHZ' })).toMatchObject([{ spec: { phase: 'AUTHZ' } }]);
    expect(standIns({ phase: 'AUTHN', failStrategy: 'OPEN' })).toHaveLength(1);
    const [unreadablePlugin] = standIns({ phase: 'AUTHN', selector: { matchLabels: 1 }, match: [{ mode: 'ALL' }] });
    expect(unreadablePlugin!.spec).toEqual({ url: 'oci://refused', phase: 'AUTHN' });
  });

  it('denies connections if the plugin processes connections', () => {
    const [network] = standIns({ phase: 'AUTHN', type: 'NETWORK' });
    expect(network).toMatchObject({
      spec: { type: 'NETWORK' },
      standsFor: { effect: expect.stringContaining('every connection') },
    });
  });
});
