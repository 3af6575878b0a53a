import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { Features } from '../../model/mesh/features.ts';
import { discoveryOf } from './discovery-type.ts';

const headless = `
apiVersion: v1
kind: Service
metadata: { name: db, namespace: shop }
spec: { clusterIP: None, selector: { app: db }, ports: [{ name: tcp, port: 5432 }] }
`;
const anywhere = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: any, namespace: shop }
spec: { hosts: [any.test], resolution: NONE, ports: [{ number: 80, name: http, protocol: HTTP }] }
`;

function discovery(yaml: string, node: GivenNode = {}, features: Partial<Features> = {}): string | undefined {
  const { context } = givenMesh(yaml, { features });
  return discoveryOf(context.services[0]!, {}, givenShape(node, context), context);
}

describe('endpoints of a service without an address', () => {
  it('the cluster uses the original destination address', () => {
    expect(discovery(headless)).toBe('ORIGINAL_DST');
    expect(discovery(anywhere)).toBe('ORIGINAL_DST');
  });

  it('the cluster selects endpoints if the original destination address is unknown', () => {
    expect(discovery(headless, { type: 'router' })).toBe('EDS');
    expect(discovery(headless, { metadata: { INTERCEPTION_MODE: 'NONE' } })).toBe('EDS');
    expect(discovery(anywhere, { metadata: { INTERCEPTION_MODE: 'NONE' } })).toBe('ORIGINAL_DST');
  });

  it('the cluster selects endpoints of headless services if PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES is set', () => {
    expect(discovery(headless, {}, { endpointsForHeadless: true })).toBe('EDS');
    expect(discovery(anywhere, {}, { endpointsForHeadless: true })).toBe('ORIGINAL_DST');
  });
});
