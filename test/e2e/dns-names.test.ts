/** Services of an agent for its workload: DNS names from the control plane's name table, probes and metrics. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type DecodedPacket, decode, encode } from 'dns-packet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { type AgentProgram, Mesh, sampleHost } from '../harness/mesh.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh | undefined;
let agent: AgentProgram;
let dnsPort: number;
let application: Server;
let health = 200;
const probe = '/app-health/web/readyz';

beforeAll(async () => {
  application = createServer((request, response) => {
    if (request.url === '/metrics') response.end('application_up 1\n');
    else response.writeHead(health).end();
  });
  application.listen(0, '127.0.0.1');
  await once(application, 'listening');
  const { port } = application.address() as AddressInfo;
  [dnsPort] = (await freePorts(1)) as [number];
  mesh = await Mesh.create({
    env: {
      INSTANCE_IP: '127.0.0.1',
      ISTIO_META_DNS_CAPTURE: 'true',
      DNS_PROXY_ADDR: `127.0.0.1:${dnsPort}`,
      DNS_FORWARD_TIMEOUT: '100ms',
      ISTIO_PROMETHEUS_ANNOTATIONS: JSON.stringify({ scrape: 'true', port: String(port), path: '/metrics' }),
      ISTIO_KUBE_APP_PROBERS: JSON.stringify({ [probe]: { httpGet: { port, path: 'healthz' } } }),
    },
  });
  await mesh.startDiscovery();
  agent = mesh.startSidecar();
});

afterAll(async () => {
  application.close();
  await conclude(mesh);
});

async function query(name: string): Promise<DecodedPacket> {
  const client = createSocket('udp4');
  try {
    client.send(encode({ type: 'query', id: 3, questions: [{ type: 'A', name }] }), dnsPort, '127.0.0.1');
    const [response] = (await once(client, 'message', { signal: AbortSignal.timeout(30_000) })) as [Buffer];
    return decode(response);
  } finally {
    client.close();
  }
}

const status = async (path: string): Promise<number> =>
  (await fetch(`http://127.0.0.1:${agent.statusPort}${path}`)).status;

const addressesOf = (response: DecodedPacket): unknown[] =>
  (response.answers ?? []).map((record) => ('data' in record ? record.data : undefined));

test("a ready agent resolves DNS queries to the allocated address with the control plane's name table (agent §9)", async () => {
  await mesh!.waitForAgent(agent);
  const queryResult = await query(sampleHost);
  expect(queryResult).toMatchObject({ flag_aa: true });
  expect(queryResult.answers).toMatchObject([
    { name: sampleHost, type: 'A', ttl: 30, data: expect.stringMatching(/^240\.240\./) },
  ]);
  expect((await query('nobody.invalid')).flag_aa).toBe(false);
});

test('DNS responses contain only the new hosts after a ServiceEntry changes (agent §9)', async () => {
  const addresses = (list: string): number =>
    mesh!.directory.edit('service.yaml', (text) =>
      text.replace(/\n {2}hosts: \[.*\](\n {2}addresses: .*)?/, (hostsText) => {
        const [, hosts] = hostsText.split('\n');
        return `\n${hosts}${list === '' ? '' : `\n  addresses: [${list}]`}`;
      }),
    );
  const resolvedAddresses = async (): Promise<unknown[]> => addressesOf(await query(sampleHost));
  for (const address of ['10.9.8.7', '10.9.8.8']) {
    addresses(address);
    await eventually(`the answer is ${address} alone`, async () => String(await resolvedAddresses()) === address);
  }
  addresses('');
  await eventually('the answer is an allocated one again', async () =>
    String(await resolvedAddresses()).startsWith('240.240.'),
  );
});

test('the agent forwards a rewritten probe to the application (agent §6.6)', async () => {
  for (health of [200, 503, 418]) expect(await status(probe)).toBe(health);
  expect(await status('/app-health/web/livez')).toBe(400);
});

test('the agent merges the metrics of agent, Envoy and application in one response (agent §6.4)', async () => {
  const text = await (await fetch(`http://127.0.0.1:${agent.statusPort}/stats/prometheus`)).text();
  expect(text).toMatch(/\nistio_agent_scrapes_total 1\n.*\nenvoy_server_live\{.*\} 1\n.*\napplication_up 1\n$/s);
});

test('the agent stays ready and keeps its last name table while the control plane is unavailable (agent §9)', async () => {
  const { program } = mesh!.discovery!;
  process.kill(program.pid, 'SIGKILL');
  await program.exited;
  expect(await query(sampleHost)).toMatchObject({ flag_aa: true, rcode: 'NOERROR' });
  expect(await status('/healthz/ready')).toBe(200);
});
