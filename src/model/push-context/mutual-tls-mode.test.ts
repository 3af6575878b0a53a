import { describe, expect, it } from 'vitest';
import type { Config } from '../config/config.ts';
import type { PeerAuthentication } from '../kinds/policies/peer-authentication.ts';
import { peerModeOf, peerModes } from './mutual-tls-mode.ts';

function policy(spec: PeerAuthentication): Config<PeerAuthentication> {
  const configHead = { apiVersion: 'security.istio.io/v1', labels: {}, annotations: {}, resourceVersion: '1' };
  return { kind: 'PeerAuthentication', namespace: 'shop', name: 'p', creationTimestamp: 0, ...configHead, spec };
}

describe('the mutual TLS mode of a workload', () => {
  it.each<[string, PeerAuthentication[], string]>([
    ['is PERMISSIVE without a policy', [], 'PERMISSIVE'],
    ['is that of its only policy', [{ mtls: 'STRICT' }], 'STRICT'],
    ['is that of the narrowest policy', [{ mtls: 'STRICT' }, { mtls: 'PERMISSIVE' }, { mtls: 'DISABLE' }], 'DISABLE'],
    [
      'is that of the wider policy if the narrower one sets none',
      [{ mtls: 'STRICT' }, { mtls: 'UNSET' }, {}],
      'STRICT',
    ],
    ['is PERMISSIVE if no policy sets one', [{ mtls: 'UNSET' }, {}], 'PERMISSIVE'],
  ])('%s', (_case, specs, mode) => {
    expect(peerModes(specs.map(policy))).toEqual({ mode, ports: new Map() });
  });

  it("can differ for individual ports, and defaults to the workload's mode", () => {
    const portLevelMtls = { 80: 'DISABLE', 81: 'UNSET' } as const;
    const modes = peerModes([policy({ mtls: 'STRICT' }), policy({ portLevelMtls, selector: { app: 'web' } })]);
    expect([80, 81, 82].map((port) => peerModeOf(modes, port))).toEqual(['DISABLE', 'STRICT', 'STRICT']);
    expect([...modes.ports.keys()]).toEqual([80, 81]);
  });

  it('is one object for the same policies, and another for other policies', () => {
    const [mesh, workload] = [policy({ mtls: 'STRICT' }), policy({})];
    expect(peerModes([mesh, workload])).toBe(peerModes([mesh, workload]));
    expect(peerModes([workload]).mode).toBe('PERMISSIVE');
    expect(peerModes([mesh, workload]).mode).toBe('STRICT');
  });
});
