/**
 * Envoy's result of validating a configuration (`--mode validate`), without a network, in 100 ms. One Envoy can validate many listeners
 * separately.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { startEnvoyWith } from '../networking/ads-envoy.ts';
import { eventually } from './eventually.ts';

/** `ended`: its process crashed on the configuration. */
export type EnvoyValidation =
  | { readonly result: 'accepted' }
  | { readonly result: 'refused' | 'ended'; readonly words: string };

/** As in the agent's bootstrap. Without this layer, Envoy accepts only short regular expressions. */
const runtime = { layers: [{ name: 'static', static_layer: { 're2.max_program_size.error_level': '32768' } }] };

/** @param resources `static_resources` of a bootstrap */
export async function validateWithEnvoy(resources: object): Promise<EnvoyValidation> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-verdict-'));
  const file = join(folder, 'bootstrap.json');
  writeFileSync(file, JSON.stringify({ layered_runtime: runtime, static_resources: resources }));
  try {
    return await new Promise((resolve) => {
      const options = ['--mode', 'validate', '-c', file, '-l', 'error', '--disable-hot-restart'];
      execFile(envoyBinary(), options, { timeout: 60_000 }, (error, stdout, stderr) => {
        if (error === null) return resolve({ result: 'accepted' });
        const lastMessage = lastWords(`${stdout}${stderr}`);
        resolve({ result: error.code === 1 ? 'refused' : 'ended', words: lastMessage });
      });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface ListenersDump {
  readonly configs?: readonly { readonly name?: string; readonly error_state?: { readonly details: string } }[];
}

/** Results from a running Envoy, which validates each received listener separately. Throws on a crash. */
export async function validateListeners(listeners: readonly object[]): Promise<EnvoyValidation[]> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-verdicts-'));
  const path = join(folder, 'listeners.json');
  const type = 'type.googleapis.com/envoy.config.listener.v3.Listener';
  const nameOf = (index: number): string => `listener-${index}`;
  const resources = listeners.map((listener, index) => ({ '@type': type, ...listener, name: nameOf(index) }));
  writeFileSync(path, JSON.stringify({ version_info: '1', resources }));
  try {
    const envoy = await startEnvoyWith({
      node: { id: 'verdicts', cluster: 'verdicts' },
      layered_runtime: runtime,
      dynamic_resources: { lds_config: { path_config_source: { path }, resource_api_version: 'V3' } },
    });
    try {
      await eventually('Envoy has judged all', async () =>
        /update_(rejected|success): [1-9]/.test(await envoy.admin('/stats?filter=listener_manager.lds.update')),
      );
      const dump = await envoy.admin('/config_dump?resource=dynamic_listeners');
      const { configs = [] } = JSON.parse(dump) as ListenersDump;
      const detailsByName = new Map(configs.map(({ name, error_state: error }) => [name, error?.details]));
      return listeners.map((_, index) => {
        if (!detailsByName.has(nameOf(index))) throw new Error(`Envoy says nothing of listener ${index}`);
        const details = detailsByName.get(nameOf(index));
        return details === undefined ? { result: 'accepted' } : { result: 'refused', words: details };
      });
    } finally {
      await envoy.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function lastWords(output: string): string {
  return /error initializing configuration '[^']*': (.*)$/s.exec(output)?.[1]?.trim() ?? output.trim().slice(-400);
}

const extension = (name: string, extraFields: object = {}): object => ({
  '@type': `type.googleapis.com/envoy.extensions.filters.${name}`,
  ...extraFields,
});

/** A plaintext HTTP listener with this route configuration and these filters before the router. */
export function httpListener(routes: object, filters: readonly object[] = [], extraFields: object = {}): object {
  const manager = extension('network.http_connection_manager.v3.HttpConnectionManager', {
    stat_prefix: 'verdict',
    route_config: routes,
    http_filters: [...filters, { name: 'envoy.filters.http.router', typed_config: extension('http.router.v3.Router') }],
    ...extraFields,
  });
  return {
    name: 'verdict',
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    filter_chains: [{ filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] }],
  };
}

/** A route configuration with only this route. */
export function oneRoute(route: object): object {
  return { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] };
}
