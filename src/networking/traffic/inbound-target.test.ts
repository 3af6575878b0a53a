import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type InboundTarget, inboundTargets } from './inbound-target.ts';

const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: own }
spec:
  hosts: [own.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP, targetPort: 8080 }, { number: 25, name: tcp, protocol: TCP }]
  endpoints: [{ address: 10.0.0.9 }]
---`;

function ingress(listener: string): string {
  return `${service}
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: own }
spec: { ingress: [{ port: { number: 9080, name: http, protocol: HTTP }, ${listener} }] }
`;
}

function targets(yaml: string, interception: 'REDIRECT' | 'NONE'): readonly InboundTarget[] {
  const { context } = givenMesh(yaml);
  return inboundTargets(
    givenShape({ ip: '10.0.0.9', metadata: { INTERCEPTION_MODE: interception } }, context),
    context,
  );
}

describe('inbound ports of a sidecar', () => {
  it("a sidecar receives traffic on the ports of its services, and forwards it to the application's ports", () => {
    expect(targets(service, 'REDIRECT').map(({ port, servicePort }) => [port, servicePort?.number])).toEqual([
      [25, 25],
      [8080, 80],
    ]);
  });

  it('the connection pool is taken from the rule without a selector, because rules with one apply to outbound traffic', () => {
    const rule = (name: string, connections: number, selector = ''): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: ${name} }
spec: { host: own.test, ${selector}trafficPolicy: { connectionPool: { tcp: { maxConnections: ${connections} } } } }
---`;
    const selectorRule = rule('chosen', 1, 'workloadSelector: { matchLabels: { app: own } }, ');
    const pool = (yaml: string): unknown => {
      const { context } = givenMesh(service + yaml);
      const shape = givenShape({ ip: '10.0.0.9', labels: { app: 'own' } }, context);
      expect(shape.labels).toEqual({ app: 'own' });
      return inboundTargets(shape, context)[0]!.connectionPool?.tcp?.maxConnections;
    };
    expect(pool(selectorRule)).toBeUndefined();
    expect(pool(selectorRule + rule('all', 100))).toBe(100);
  });

  it('a sidecar without redirection has no inbound ports, because the application binds them', () => {
    expect(targets(service, 'NONE')).toEqual([]);
  });

  it.each([
    ['127.0.0.1:8080', { address: '127.0.0.1', port: 8080 }],
    ['0.0.0.0:8080', { address: '10.0.0.9', port: 8080 }],
    ['unix:///run/app.sock', { address: 'unix:///run/app.sock', port: 0 }],
  ])("traffic is forwarded to the Sidecar object's default endpoint %s", (endpoint, forwardTo) => {
    const [target, ...otherPorts] = targets(ingress(`defaultEndpoint: "${endpoint}"`), 'REDIRECT');
    expect(otherPorts).toEqual([]);
    expect(target).toMatchObject({ port: 9080, forwardTo });
    expect(target).not.toHaveProperty('hasOwnListener');
    expect(target?.bind).toBe('10.0.0.9');
  });

  it.each([
    ['127.0.0.1:8080', 'fd00::9', '::1'],
    ['[::1]:8080', 'fd00::9', '::1'],
    ['0.0.0.0:8080', 'fd00::9', 'fd00::9'],
    ['[::]:8080', 'fd00::9', 'fd00::9'],
    ['[::1]:8080', '10.0.0.9', '127.0.0.1'],
    ['[::]:8080', '10.0.0.9', '10.0.0.9'],
    ['[::1]:8080', '10.0.0.9,fd00::9', '::1'],
    ['127.0.0.1:8080', 'fd00::9,10.0.0.9', '127.0.0.1'],
    ['[::]:8080', '10.0.0.9,fd00::9', 'fd00::9'],
  ])('default endpoint %s on a workload with addresses %s is translated to %s', (endpoint, addresses, address) => {
    const { context } = givenMesh(ingress(`defaultEndpoint: "${endpoint}"`));
    const node = { ip: addresses.split(',')[0]!, metadata: { INSTANCE_IPS: addresses } };
    expect(inboundTargets(givenShape(node, context), context)[0]?.forwardTo).toEqual({ address, port: 8080 });
  });

  it('the proxy binds the port of an ingress listener if traffic is not redirected', () => {
    const listener = 'defaultEndpoint: 127.0.0.1:8080, captureMode: NONE, bind: 10.0.0.9';
    expect(targets(ingress(listener), 'REDIRECT')[0]).toMatchObject({ hasOwnListener: true, bind: '10.0.0.9' });
    const [target] = targets(ingress('defaultEndpoint: 127.0.0.1:8080'), 'NONE');
    expect(target).toMatchObject({ hasOwnListener: true, bind: '0.0.0.0' });
  });

  it('an ingress listener that would forward to itself is omitted', () => {
    expect(targets(ingress('captureMode: NONE'), 'NONE')).toEqual([]);
    const [target] = targets(ingress('captureMode: NONE, bind: 10.0.0.9'), 'NONE');
    expect(target?.forwardTo).toEqual({ address: '127.0.0.1', port: 9080 });
  });
});
