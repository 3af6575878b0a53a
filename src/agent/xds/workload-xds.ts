/** The charts of the xDS proxy with their effects. */
import { xdsProxyMachine } from '../../../machines/agent/xds/xds-proxy.machine.ts';
import { xdsStreamMachine } from '../../../machines/agent/xds/xds-stream.machine.ts';
import type { Turn } from '../../runtime/turn.ts';
import { downstream } from './downstream.ts';
import { type UpstreamEnvironment, upstream } from './upstream.ts';
import { xdsServer } from './xds-server.ts';
import { XdsStreams } from './xds-streams.ts';

export function workloadXds({ turn, ...environment }: Omit<UpstreamEnvironment, 'streams'> & { turn?: Turn }) {
  const streams = new XdsStreams();
  const { activity } = environment;
  return xdsProxyMachine.provide({
    actors: {
      server: xdsServer({ streams, ...(turn && { turn }) }),
      stream: xdsStreamMachine.provide({
        actors: {
          downstream: downstream({ streams, activity }),
          upstream: upstream({ ...environment, streams }),
        },
      }),
    },
  });
}
