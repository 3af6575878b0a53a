/** Objects of another namespace with a workload's address, tested with its virtual inbound listener and a JWT check in a real Envoy. */
import { expect, test } from 'vitest';
import { shapeOf } from '../../src/model/proxy/proxy-shape.ts';
import { inboundClusterName } from '../../src/networking/traffic/resource-names.ts';
import { givenMesh } from '../fixtures/given-mesh.ts';
import { attacks, bankProxy, tokenCheck, victims } from '../networking/bank-and-mallory.ts';
import { exchange, plain, startInboundListener } from '../networking/inbound-listener.ts';

const servedPort = 8080;
const plaintext = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: default, namespace: bank }
spec: { mtls: { mode: DISABLE } }
---`;
const bank = tokenCheck + plaintext + victims['a pod that its Service selects'];

/** The response to a request with a forged token, and the bytes that reached the application. */
async function forgedRequest(attack: string): Promise<{ response: string; reached: string }> {
  // The oldest object decides a port's protocol, so the TCP chain is for the same port.
  const { context: push } = givenMesh(attack + bank);
  const inbound = await startInboundListener({
    of: { proxy: bankProxy, shape: shapeOf(bankProxy, push), push },
    port: servedPort,
    cluster: inboundClusterName(servedPort),
  });
  try {
    const request = 'GET /balance HTTP/1.1\r\nhost: web\r\nauthorization: Bearer e30.e30.e30\r\n\r\n';
    const response = await exchange(plain(inbound.port), request);
    return { response, reached: Buffer.concat(inbound.application.received).toString() };
  } finally {
    await inbound.stop();
  }
}

const serviceEntry = attacks['a ServiceEntry with the address as endpoint'];
const slice = attacks['a Service without a selector and its EndpointSlice'];

test.each([
  ['no other object', ''],
  ['a ServiceEntry of another namespace', serviceEntry],
  ['a Service and an EndpointSlice of another namespace', slice],
])('the inbound listener rejects a forged token with %s at the address of the workload', async (_, attack) => {
  const { response, reached } = await forgedRequest(attack);
  expect(response).toMatch(/^HTTP\/1\.1 401 /);
  expect(reached).toBe('');
});

/** Before the fix, objects of any namespace had this effect; it shows that the test above can fail. */
test.each([
  ['a ServiceEntry', serviceEntry],
  ['a Service and an EndpointSlice', slice],
])(
  'the inbound listener forwards a forged token unchecked if %s of its own namespace declares the port as TCP',
  async (_, attack) => {
    const { reached } = await forgedRequest(attack.replaceAll('namespace: mallory', 'namespace: bank'));
    expect(reached).toContain('Bearer e30.e30.e30');
  },
);
