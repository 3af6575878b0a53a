/** Effects of the chart `xds-proxy`, and of the charts that it starts. */
import { xdsProxyMachine } from '../../../machines/agent/xds/xds-proxy.machine.ts';
import { wasmModuleWithEffects } from '../wasm/wasm-module.effects.ts';
import type { UpstreamEnvironment } from './upstream.ts';
import { workloadHealthWithEffects } from './workload-health.effects.ts';
import { type XdsServerEnvironment, xdsServer } from './xds-server.ts';
import { xdsStreamWithEffects } from './xds-stream.effects.ts';
import { XdsStreams } from './xds-streams.ts';

export function xdsProxyWithEffects({
  ownership,
  keptBundle,
  askWorkload,
  ...environment
}: Omit<UpstreamEnvironment, 'streams'> &
  Pick<XdsServerEnvironment, 'ownership' | 'keptBundle'> & {
    /** Why the workload cannot serve; empty: it can. Absent: nobody asks. */
    readonly askWorkload?: (stopped: AbortSignal) => Promise<string>;
  }) {
  const streams = new XdsStreams();
  return xdsProxyMachine.provide({
    actors: {
      server: xdsServer({ streams, ...(ownership && { ownership }), ...(keptBundle && { keptBundle }) }),
      ...(askWorkload && { workloadHealth: workloadHealthWithEffects(askWorkload) }),
      stream: xdsStreamWithEffects({ ...environment, streams }),
      ...(environment.wasmModules && { wasmModule: wasmModuleWithEffects(environment.wasmModules) }),
    },
  });
}
