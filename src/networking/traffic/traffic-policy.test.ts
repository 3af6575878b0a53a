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

describe('effective traffic policy', () => {
  it("the rule's policy applies unless it is overridden", () => {
    expect(effectivePolicy(rule, '', 80)).toMatchObject({
      loadBalancer: { simple: 'RANDOM' },
      tls: { mode: 'SIMPLE' },
    });
  });

  it('a subset overrides the policy field by field', () => {
    expect(effectivePolicy(rule, 'v1', 80)).toMatchObject({
      loadBalancer: { simple: 'ROUND_ROBIN' },
      tls: { mode: 'SIMPLE' },
    });
  });

  it('port settings replace all fields that can be set for ports', () => {
    expect(effectivePolicy(rule, '', 90)).toEqual({
      outlierDetection: { consecutive5xxErrors: 1 },
      proxyProtocol: { version: 'V1' },
    });
    expect(effectivePolicy(rule, 'v1', 90)).toEqual({ tls: { mode: 'DISABLE' }, proxyProtocol: { version: 'V1' } });
  });

  it('the policy is empty if there is no rule', () => {
    expect(effectivePolicy(undefined, 'v1', 80)).toEqual({});
  });
});

describe('locality setting', () => {
  it("the rule's setting overrides that of the mesh, and is absent if disabled", () => {
    const mesh = { enabled: true };
    const ruleSetting = { failoverPriority: ['a'] };
    const off = { loadBalancer: { localityLbSetting: { enabled: false } } };
    expect(localityOrdering({}, mesh, {})).toBe(mesh);
    expect(localityOrdering({ loadBalancer: { localityLbSetting: ruleSetting } }, { enabled: false }, {})).toBe(
      ruleSetting,
    );
    expect(localityOrdering(off, mesh, {})).toBeUndefined();
  });

  it("the service's traffic distribution applies if the rule has no setting", () => {
    const zonalService = { attributes: { type: 'ClusterIP', trafficDistribution: 'PreferSameZone' } } as const;
    const ruleSetting = { failoverPriority: ['a'] };
    expect(localityOrdering({}, { enabled: false }, zonalService)).toEqual({ distribution: 'PreferSameZone' });
    expect(localityOrdering({ loadBalancer: { localityLbSetting: ruleSetting } }, {}, zonalService)).toBe(ruleSetting);
  });
});
