/** The charts of the xDS proxy with their effects. */
import { xdsProxyMachine } from '../../../machines/agent/xds/xds-proxy.machine.ts';
import { xdsStreamMachine } from '../../../machines/agent/xds/xds-stream.machine.ts';
import { downstream } from './downstream.ts';
import { type UpstreamEnvironment, upstream } from './upstream.ts';
import { type XdsServerEnvironment, xdsServer } from './xds-server.ts';
import { XdsStreams } from './xds-streams.ts';

export function workloadXds({
  ownership,
  keptBundle,
  ...environment
}: Omit<UpstreamEnvironment, 'streams'> & Pick<XdsServerEnvironment, 'ownership' | 'keptBundle'>) {
  const streams = new XdsStreams();
  const { activity } = environment;
  return xdsProxyMachine.provide({
    actors: {
      server: xdsServer({ streams, ...(ownership && { ownership }), ...(keptBundle && { keptBundle }) }),
      stream: xdsStreamMachine.provide({
        actors: {
          downstream: downstream({ streams, activity }),
          upstream: upstream({ ...environment, streams }),
        },
      }),
    },
  });
}
