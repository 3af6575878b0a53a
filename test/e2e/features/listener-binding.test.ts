/** Listeners that keep name and address while they start or stop binding their port: Envoy must apply the change without a crash. */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isSystemError } from '../../../src/runtime/errors.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { object, serviceEntry } from './harness/objects.ts';
import { openConnection } from './harness/requests.ts';

const host = 'db.shop.test';
const address = '127.0.5.1';
const proxies = {
  web: { labels: { app: 'web' } },
  redirected: { labels: { app: 'redirected' }, metadata: { INTERCEPTION_MODE: 'REDIRECT' } },
};
const proxyNames = Object.keys(proxies);
let mesh: FeatureMesh;

beforeAll(async () => {
  const [proxyListenPort, proxyInboundListenPort] = await freePorts(2);
  const meshConfig = { proxyListenPort, proxyInboundListenPort };
  mesh = await FeatureMesh.start({ proxies, meshConfig, envoyArgs: ['--drain-time-s', '1'] });
});

afterAll(() => mesh.stop());

const binds = (port: number, proxy: string, protocol: string, captureMode: string): string =>
  object('networking.istio.io/v1', 'Sidecar', 'shop', 'binding', {
    workloadSelector: { labels: { app: proxy } },
    egress: [{ port: { number: port, name: 'db', protocol }, bind: address, captureMode, hosts: ['*/*'] }],
  });

const listenerPatch = (port: number, proxy: string, patch: object): string =>
  object('networking.istio.io/v1alpha3', 'EnvoyFilter', 'shop', 'binding', {
    workloadSelector: { labels: { app: proxy } },
    configPatches: [{ applyTo: 'LISTENER', match: { listener: { portNumber: port } }, patch }],
  });

const merge = (isBound: boolean): object => ({ operation: 'MERGE', value: { bind_to_port: isBound } });

const add = (port: number, isBound: boolean, text: string): object => ({
  operation: 'ADD',
  value: {
    name: 'added',
    address: { socket_address: { address, port_value: port } },
    bind_to_port: isBound,
    filter_chains: [
      {
        filters: [
          {
            name: 'answer',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config',
              response: { inline_string: text },
            },
          },
        ],
      },
    ],
  },
});

/** Envoy's workers close their sockets shortly after the main thread has acknowledged. */
async function isRefused(port: number): Promise<void> {
  await eventually(`${address}:${port} refuses connections`, async () => !(await isListening(port)));
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, address);
  try {
    return await new Promise((resolve, reject) => {
      socket.on('connect', () => resolve(true));
      socket.on('error', (error) => (isSystemError(error, 'ECONNREFUSED') ? resolve(false) : reject(error)));
    });
  } finally {
    socket.destroy();
  }
}

describe.each(proxyNames)('the listener port of the proxy %s', (proxy) => {
  test.each(['TCP', 'TLS'])(
    'is bound or closed when a Sidecar changes the capture mode from or to NONE with the protocol %s',
    async (protocol) => {
      const [backend, port] = [await mesh.tcp('db'), await mesh.port()];
      const objectsFor = (captureMode: string, spoken: string): string => `
${serviceEntry(host, { port, protocol: spoken, backends: [backend] })}
---
${binds(port, proxy, spoken, captureMode)}`;
      for (let time = 0; time < 2; time++) {
        await mesh.apply(objectsFor('IPTABLES', 'TCP'));
        await isRefused(port);
        await mesh.apply(objectsFor('NONE', protocol));
        if (protocol === 'TCP') expect((await mesh.connect(proxy, { port, address })).text).toContain('db');
        else await eventually('the port is bound', () => isListening(port));
      }
    },
  );

  test('is closed or bound when a patch that unbinds the listener is added or removed', async () => {
    const [backend, port] = [await mesh.tcp('db'), await mesh.port()];
    const objectsFor = (captureMode: string): string => `
${serviceEntry(host, { port, protocol: 'TCP', backends: [backend] })}
---
${binds(port, proxy, 'TCP', captureMode)}`;
    const unbound = `${objectsFor('NONE')}\n---\n${listenerPatch(port, proxy, merge(false))}`;
    const bound = `${objectsFor('IPTABLES')}\n---\n${listenerPatch(port, proxy, merge(true))}`;
    for (const config of [objectsFor('NONE'), bound, objectsFor('NONE')]) {
      await mesh.apply(unbound);
      await isRefused(port);
      await mesh.apply(config);
      expect((await openConnection({ port, address })).text).toContain('db');
      await mesh.apply(objectsFor('IPTABLES'));
      await isRefused(port);
    }
  });

  test('is bound when a patch adds the listener', async () => {
    const port = await mesh.port();
    for (const text of ['one', 'two']) {
      await mesh.apply(listenerPatch(port, proxy, add(port, false, text)));
      await isRefused(port);
      await mesh.apply(listenerPatch(port, proxy, add(port, true, text)));
      expect((await openConnection({ port, address })).text).toBe(text);
    }
  });
});
