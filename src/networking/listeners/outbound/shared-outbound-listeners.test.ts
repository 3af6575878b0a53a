import { describe, expect, it } from 'vitest';
import { rememberAll } from '../../../../test/fixtures/given-memory.ts';
import { type GivenMesh, givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { buildListeners } from '../build.ts';

function mesh(logged: boolean, previous?: GivenMesh): GivenMesh {
  const changed = [{ kind: 'Telemetry', namespace: 'shop', name: 'logged' }];
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
spec: { selector: { matchLabels: { app: logged } }, accessLogging: [{ disabled: ${logged} }] }
`,
    previous && { previous: { ...previous, changed } },
  );
}

/** How often the listener of port 80 was made for workloads of these labels, one after the other. */
function made(meshes: readonly GivenMesh[], apps: readonly string[]): number {
  const memory = rememberAll();
  for (const { context } of meshes) {
    for (const app of apps)
      buildListeners(givenShape({ namespace: 'shop', labels: { app } }, context), context, memory);
  }
  return memory.made.filter((id) => id.startsWith('LDS ["0.0.0.0",80')).length;
}

describe('the outbound listeners of a namespace', () => {
  it('are made once for workloads that differ in who may come to them', () => {
    expect(made([mesh(true)], ['plain', 'guarded', 'plain'])).toBe(1);
  });

  it('are made apart for workloads that differ in what is logged', () => {
    expect(made([mesh(true)], ['plain', 'logged', 'plain', 'logged'])).toBe(2);
  });

  it('are made anew when what is logged becomes another, and else not', () => {
    const before = mesh(true);
    expect(made([before, mesh(true, before)], ['logged'])).toBe(1);
    expect(made([before, mesh(false, before)], ['logged'])).toBe(2);
  });
});
