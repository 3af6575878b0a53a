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
    const closedPolicies = {
      ...empty,
      id: 'x',
      authorizationPolicies: [object<never>('AuthorizationPolicy', 'nobody')],
    };
    expect(policiesOutbound(closedPolicies).id).toBe(policiesOutbound(empty).id);
    expect(policyObjects(policiesOutbound(closedPolicies))).toEqual([]);
    expect(policiesOutbound(closedPolicies).id).toBe('');
  });

  it('outbound policies are equal for workloads with different EnvoyFilters', () => {
    const patchedPolicies = { ...empty, id: 'x', envoyFilters: [object<never>('EnvoyFilter', 'one')] };
    expect(policiesOutbound(patchedPolicies).id).toBe('');
    expect(policyObjects(policiesOutbound(patchedPolicies))).toEqual([]);
  });

  it('outbound policies differ if the telemetry or the type of an object with the same name differs', () => {
    const loggedPolicies = { ...empty, id: 'x', telemetries: [object<never>('Telemetry', 'one')] };
    const plugged = { ...empty, id: 'y', wasmPlugins: [object<never>('WasmPlugin', 'one')] };
    const ids = [empty, loggedPolicies, plugged].map((policies) => policiesOutbound(policies).id);
    expect(new Set(ids).size).toBe(3);
  });

  it('outbound policies include the objects, so that changes are detected', () => {
    const loggedPolicies = { ...empty, id: 'x', telemetries: [object<never>('Telemetry', 'one')] };
    expect(policyKeys(policiesOutbound(loggedPolicies))).toEqual([{ kind: 'Telemetry', namespace: 'a', name: 'one' }]);
    expect(policyText(loggedPolicies, ['envoyFilters'])).toBe('');
  });
});
