import { describe, expect, it } from 'vitest';
import { unboundedMemory } from '../../../../test/fixtures/given-memory.ts';
import { type GivenMesh, givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { buildListeners } from '../build.ts';

function mesh(isLogged: boolean, previous?: GivenMesh): GivenMesh {
  const changedKeys = [{ kind: 'Telemetry', namespace: 'shop', name: 'logged' }];
  return givenMesh(
    `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.test]
  resolution: NONE
  ports: [{ number: 80, name: http, protocol: HTTP }]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: guarded, namespace: shop }
spec: { selector: { matchLabels: { app: guarded } } }
---
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: { name: logged, namespace: shop }
spec: { selector: { matchLabels: { app: logged } }, accessLogging: [{ disabled: ${isLogged} }] }
`,
    previous && { previous: { ...previous, changed: changedKeys } },
  );
}

/** Returns how often the listener of port 80 is built for workloads with these labels, in sequence. */
function builtListeners(meshes: readonly GivenMesh[], apps: readonly string[]): number {
  const cache = unboundedMemory();
  for (const { context } of meshes) {
    for (const app of apps) buildListeners(givenShape({ namespace: 'shop', labels: { app } }, context), context, cache);
  }
  return cache.builtKeys.filter((id) => id.startsWith('LDS ["0.0.0.0",80')).length;
}

describe('shared outbound listeners of a namespace', () => {
  it('workloads with different inbound authorization share listeners', () => {
    expect(builtListeners([mesh(true)], ['plain', 'guarded', 'plain'])).toBe(1);
  });

  it('workloads with different access logs have separate listeners', () => {
    expect(builtListeners([mesh(true)], ['plain', 'logged', 'plain', 'logged'])).toBe(2);
  });

  it('listeners are rebuilt only if access logs change', () => {
    const previous = mesh(true);
    expect(builtListeners([previous, mesh(true, previous)], ['logged'])).toBe(1);
    expect(builtListeners([previous, mesh(false, previous)], ['logged'])).toBe(2);
  });
});
