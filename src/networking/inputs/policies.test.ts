import { describe, expect, it } from 'vitest';
import type { Config } from '../../model/config/config.ts';
import { noPolicies as empty } from '../../model/push-context/workload-policies.ts';
import { policiesOutbound, policyKeys, policyObjects, policyText } from './policies.ts';

function object<Spec>(kind: string, name: string): Config<Spec> {
  const envelope = { kind, apiVersion: 'v1', name, namespace: 'a', labels: {}, annotations: {}, resourceVersion: '1' };
  return { ...envelope, creationTimestamp: 0, spec: {} as Spec };
}

describe('outbound policies of a workload', () => {
  it('outbound policies are equal for workloads with different inbound authorization', () => {
    const closed = { ...empty, id: 'x', authorizationPolicies: [object<never>('AuthorizationPolicy', 'nobody')] };
    expect(policiesOutbound(closed).id).toBe(policiesOutbound(empty).id);
    expect(policyObjects(policiesOutbound(closed))).toEqual([]);
    expect(policiesOutbound(closed).id).toBe('');
  });

  it('outbound policies are equal for workloads with different EnvoyFilters', () => {
    const patched = { ...empty, id: 'x', envoyFilters: [object<never>('EnvoyFilter', 'one')] };
    expect(policiesOutbound(patched).id).toBe('');
    expect(policyObjects(policiesOutbound(patched))).toEqual([]);
  });

  it('outbound policies differ if the telemetry or the type of an object with the same name differs', () => {
    const logged = { ...empty, id: 'x', telemetries: [object<never>('Telemetry', 'one')] };
    const plugged = { ...empty, id: 'y', wasmPlugins: [object<never>('WasmPlugin', 'one')] };
    const ids = [empty, logged, plugged].map((policies) => policiesOutbound(policies).id);
    expect(new Set(ids).size).toBe(3);
  });

  it('outbound policies include the objects, so that changes are detected', () => {
    const logged = { ...empty, id: 'x', telemetries: [object<never>('Telemetry', 'one')] };
    expect(policyKeys(policiesOutbound(logged))).toEqual([{ kind: 'Telemetry', namespace: 'a', name: 'one' }]);
    expect(policyText(logged, ['envoyFilters'])).toBe('');
  });
});
