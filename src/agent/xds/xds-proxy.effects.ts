import { xdsProxyMachine } from '../../../machines/agent/xds/xds-proxy.machine.ts';
import { wasmModuleWithEffects } from '../wasm/wasm-module.effects.ts';
import type { UpstreamEnvironment } from './upstream.ts';
import { workloadHealthWithEffects } from './workload-health.effects.ts';
import { type XdsServerEnvironment, xdsServer } from './xds-server.ts';
import { xdsStreamWithEffects } from './xds-stream.effects.ts';
import { XdsStreams } from './xds-streams.ts';

export function xdsProxyWithEffects({
  ownership,
  storedBundle,
  probeWorkload,
  ...environment
}: Omit<UpstreamEnvironment, 'streams'> &
  Pick<XdsServerEnvironment, 'ownership' | 'storedBundle'> & {
    /** Returns why the workload is unhealthy, or an empty text. */
    readonly probeWorkload?: (stopSignal: AbortSignal) => Promise<string>;
  }) {
  const streams = new XdsStreams();
  return xdsProxyMachine.provide({
    actors: {
      server: xdsServer({ streams, ...(ownership && { ownership }), ...(storedBundle && { storedBundle }) }),
      ...(probeWorkload && { workloadHealth: workloadHealthWithEffects(probeWorkload) }),
      stream: xdsStreamWithEffects({ ...environment, streams }),
      ...(environment.wasmModules && { wasmModule: wasmModuleWithEffects(environment.wasmModules) }),
    },
  });
}
