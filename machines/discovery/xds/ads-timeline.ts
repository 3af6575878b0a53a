import type { Timeline } from '../../timeline.ts';
import { endpointType, listenerType, routeType } from './ads-types.ts';

export const adsConnectionTimeline: Timeline = {
  lane: { count: 'connections' },
  process: {
    title: { event: 'node.accepted', text: '{node}: make before break' },
    steps: [
      { event: 'clusters.pending', step: 'clusters', text: 'waiting for {clusters}' },
      // Requests are not recorded at trace level `standard`.
      {
        event: 'request.received',
        when: { 'request.typeUrl': endpointType },
        during: ['clusters'],
        step: 'endpoints',
        text: 'waiting for the client to warm the clusters',
      },
      {
        event: 'clusters.usable',
        during: ['clusters', 'endpoints'],
        step: 'routes',
        text: 'waiting for acknowledgements (recorded at trace level full)',
      },
      { event: 'clusters.lingering', step: 'removal', text: 'requests may still use {clusters}' },
      { event: 'clusters.removed', during: ['removal'] },
      { event: 'request.received', when: { 'request.typeUrl': routeType }, during: ['routes'] },
      { event: 'request.received', when: { 'request.typeUrl': listenerType }, during: ['routes'] },
    ],
  },
  marks: [
    { event: 'clusters.abandoned', kind: 'failure', lane: '{to}', text: 'stopped waiting for {clusters}' },
    { event: 'clusters.evicted', kind: 'failure', lane: '{to}', text: 'removed early: {clusters}' },
  ],
  links: [
    { event: 'node.accepted', side: 'receives', key: 'node {node}', text: 'xds.connect' },
    { event: 'node.accepted', side: 'sends', key: 'configuration of {node}', text: 'xds.configured' },
    { event: 'response.sent', side: 'sends', key: 'push {nonce}', text: 'xds.push' },
    { event: 'request.received', side: 'receives', key: 'answer to {request.nonce}', text: 'xds.answer' },
  ],
};
