import { describe, expect, it } from 'vitest';
import type { DestinationRule } from '../../model/kinds/destinations/destination-rule.ts';
import { effectivePolicy, localityOrdering } from './traffic-policy.ts';

const rule: DestinationRule = {
  host: 'a',
  trafficPolicy: {
    loadBalancer: { simple: 'RANDOM' },
    tls: { mode: 'SIMPLE' },
    proxyProtocol: { version: 'V1' },
    portLevelSettings: [{ port: { number: 90 }, outlierDetection: { consecutive5xxErrors: 1 } }],
  },
  subsets: [
    {
      name: 'v1',
      trafficPolicy: {
        loadBalancer: { simple: 'ROUND_ROBIN' },
        portLevelSettings: [{ port: { number: 90 }, tls: { mode: 'DISABLE' } }],
      },
    },
  ],
};

describe('the policy in force', () => {
  it('is the rule’s own where nothing overrides it', () => {
    expect(effectivePolicy(rule, '', 80)).toMatchObject({
      loadBalancer: { simple: 'RANDOM' },
      tls: { mode: 'SIMPLE' },
    });
  });

  it('is overridden by a subset field by field', () => {
    expect(effectivePolicy(rule, 'v1', 80)).toMatchObject({
      loadBalancer: { simple: 'ROUND_ROBIN' },
      tls: { mode: 'SIMPLE' },
    });
  });

  it('is replaced by a port level as a whole, except for what ports cannot say', () => {
    expect(effectivePolicy(rule, '', 90)).toEqual({
      outlierDetection: { consecutive5xxErrors: 1 },
      proxyProtocol: { version: 'V1' },
    });
    expect(effectivePolicy(rule, 'v1', 90)).toEqual({ tls: { mode: 'DISABLE' }, proxyProtocol: { version: 'V1' } });
  });

  it('is empty without a rule', () => {
    expect(effectivePolicy(undefined, 'v1', 80)).toEqual({});
  });
});

describe('the locality setting', () => {
  it('is the rule’s over the mesh’s, and none when it is switched off', () => {
    const mesh = { enabled: true };
    const own = { failoverPriority: ['a'] };
    const off = { loadBalancer: { localityLbSetting: { enabled: false } } };
    expect(localityOrdering({}, mesh, {})).toBe(mesh);
    expect(localityOrdering({ loadBalancer: { localityLbSetting: own } }, { enabled: false }, {})).toBe(own);
    expect(localityOrdering(off, mesh, {})).toBeUndefined();
  });

  it('is the service’s own wish where the rule says nothing', () => {
    const near = { attributes: { type: 'ClusterIP', trafficDistribution: 'PreferSameZone' } } as const;
    const own = { failoverPriority: ['a'] };
    expect(localityOrdering({}, { enabled: false }, near)).toEqual({ distribution: 'PreferSameZone' });
    expect(localityOrdering({ loadBalancer: { localityLbSetting: own } }, {}, near)).toBe(own);
  });
});
