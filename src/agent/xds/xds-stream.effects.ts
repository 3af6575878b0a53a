import { xdsStreamMachine } from '../../../machines/agent/xds/xds-stream.machine.ts';
import { downstream } from './downstream.ts';
import { type UpstreamEnvironment, upstream } from './upstream.ts';

export function xdsStreamWithEffects(environment: UpstreamEnvironment) {
  return xdsStreamMachine.provide({
    actors: {
      downstream: downstream(environment),
      upstream: upstream(environment),
    },
  });
}
