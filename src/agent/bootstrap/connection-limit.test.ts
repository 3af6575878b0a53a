import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { generateBootstrap } from '../../../test/fixtures/generated-bootstrap.ts';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { startEnvoyWith } from '../../../test/networking/ads-envoy.ts';

const limit = 2;
const maxCloseMs = 90_000;

test('closes connections beyond connectionSettings.globalDownstreamConnectionLimit, except probe connections', async () => {
  const [port, statusPort, prometheusPort] = [await freePort(), await freePort(), await freePort()];
  const { bootstrap, warnings } = generateBootstrap({
    env: {
      PROXY_CONFIG: `connectionSettings: {globalDownstreamConnectionLimit: ${limit}}`,
      ENVOY_STATUS_PORT: String(statusPort),
      ENVOY_PROMETHEUS_PORT: String(prometheusPort),
    },
  });
  expect(warnings).toEqual([]);
  const { clusters, listeners } = bootstrap.static_resources;
  const envoy = await startEnvoyWith({
    node: bootstrap.node,
    overload_manager: bootstrap.overload_manager,
    static_resources: { clusters, listeners: [...listeners, echo(port)] },
  });
  onTestFinished(envoy.stop);
  await eventually('Envoy is live', async () => expect((await envoy.admin('/ready')).trim()).toBe('LIVE'));
  const acceptedSockets = [await echoing(port), await echoing(port)];
  const rejectedSocket = openSocket(port);
  await once(rejectedSocket, 'close', { signal: AbortSignal.timeout(maxCloseMs) });
  expect(await envoy.admin('/stats?filter=downstream_global_cx_overflow')).toMatch(
    new RegExp(`listener.127.0.0.1_${port}.downstream_global_cx_overflow: 1`),
  );
  // No agent runs behind this listener, so Envoy itself responds.
  expect((await fetch(`http://127.0.0.1:${statusPort}/healthz/ready`)).status).toBe(503);
  for (const socket of acceptedSockets) expect(socket.closed).toBe(false);
});

test('warns about connectionSettings that have no effect', () => {
  const { options } = generateBootstrap({
    env: { PROXY_CONFIG: 'connectionSettings: {profile: EDGE, httpIdleTimeout: 600s}' },
  });
  expect(options.warnings).toEqual([
    ...['connectionSettings.profile', 'connectionSettings.httpIdleTimeout'].map((field) =>
      expect.objectContaining({ event: 'option.fieldIgnored', field, reason: 'unknown field' }),
    ),
  ]);
});

function openSocket(port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket.resume();
}

async function echoing(port: number): Promise<Socket> {
  const socket = openSocket(port);
  socket.write('x');
  await once(socket, 'data');
  return socket;
}

function echo(port: number): object {
  const typed_config = { '@type': 'type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo' };
  return {
    name: 'echo',
    address: { socket_address: { address: '127.0.0.1', port_value: port } },
    filter_chains: [{ filters: [{ name: 'envoy.filters.network.echo', typed_config }] }],
  };
}
