/** The charts of the xDS proxy with their effects. */
import { fromPromise } from 'xstate';
import { type ProbeAnswer, workloadHealthMachine } from '../../../machines/agent/xds/workload-health.machine.ts';
import { xdsProxyMachine } from '../../../machines/agent/xds/xds-proxy.machine.ts';
import { xdsStreamMachine } from '../../../machines/agent/xds/xds-stream.machine.ts';
import { downstream } from './downstream.ts';
import { type UpstreamEnvironment, upstream } from './upstream.ts';
import { type XdsServerEnvironment, xdsServer } from './xds-server.ts';
import { XdsStreams } from './xds-streams.ts';

export function workloadXds({
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
  const { activity } = environment;
  return xdsProxyMachine.provide({
    actors: {
      server: xdsServer({ streams, ...(ownership && { ownership }), ...(keptBundle && { keptBundle }) }),
      ...(askWorkload && {
        workloadHealth: workloadHealthMachine.provide({
          actors: {
            probeWorkload: fromPromise<ProbeAnswer, { timeoutMs: number }>(async ({ signal }) => ({
              reason: await askWorkload(signal),
            })),
          },
        }),
      }),
      stream: xdsStreamMachine.provide({
        actors: {
          downstream: downstream({ streams, activity }),
          upstream: upstream({ ...environment, streams }),
        },
      }),
    },
  });
}
