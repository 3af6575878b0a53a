/** Diagrams and traces, for the tests of the check. */
import type { TraceBody, TraceRecord } from '../../runtime/trace.ts';
import type { Diagram } from '../diagram/diagram.ts';
import { parseDiagram } from '../diagram/parse.ts';
import { checkTrace, type Departure } from './check.ts';

export const restart = parseDiagram(
  `sequenceDiagram
  %% interrupted by: agent->>supervisor: supervisor.stop
  participant agent
  participant watcher as cert-watcher
  participant supervisor
  participant old as epoch-N
  participant new as epoch-N+1

  watcher->>supervisor: config.changed
  supervisor->>new: spawn
  supervisor->>new: epoch.start
  new->>supervisor: epoch.started
  alt
    new->>supervisor: epoch.live
    supervisor->>old: epoch.supersede
    old->>supervisor: epoch.exited
    old->>supervisor: done
  else
    new->>new: timer liveTimeout
    supervisor->>new: epoch.abort
    new->>supervisor: epoch.exited
    opt
      supervisor->>agent: restart.failed
    end
  end`,
  'restart.mmd',
);
export const shutdown = parseDiagram(
  'sequenceDiagram\nparticipant agent\nparticipant supervisor\nagent->>supervisor: supervisor.stop\nsupervisor->>agent: supervisor.stopped',
  'shutdown.mmd',
);
export const connection = parseDiagram(
  `sequenceDiagram
  participant server as ads-server
  participant connection as ads-connection-N
  participant stream as ads-connection-N/stream
  server->>connection: connection.opened
  loop
    stream->>connection: request.received
    connection->>stream: response.sent
  end
  stream->>connection: stream.closed`,
  'connection.mmd',
);

/** `from>to type` is an event, `parent>actor spawn`, `actor timer NAME`, `actor done|stopped|error`, `actor: from>to` a transition. */
function body(text: string): TraceBody {
  const [ends = '', type = '', timer = ''] = text.split(' ');
  const [from = '', to] = ends.split('>');
  if (type === 'spawn') return { kind: 'spawn', actor: to!, ...(from !== 'outside' && { parent: from }) };
  if (type === 'timer') return { kind: 'timer', actor: from, timer };
  if (to !== undefined) return { kind: 'event', from, to, event: { type } };
  return { kind: 'stop', actor: from, status: type as 'done' };
}

export const trace = (...steps: string[]): TraceRecord[] =>
  steps.map((step, i) => ({ seq: i + 1, t: (i + 1) * 10, ...body(step) }));

/** `kind record: type (file:line)` of each departure. */
export const departuresOf = (diagrams: Diagram[], records: TraceRecord[]): string[] =>
  checkTrace(diagrams, records).departures.map(brief);
export const brief = ({ kind, message, diagram }: Departure): string =>
  `${kind} ${message.seq}: ${message.type}${diagram === undefined ? '' : ` (${diagram.file}:${diagram.line})`}`;

/** A restart from one epoch to another. */
export const restartFrom = (old: number, next = old + 1): string[] => [
  'cert-watcher>supervisor config.changed',
  `supervisor>epoch-${next} spawn`,
  `supervisor>epoch-${next} epoch.start`,
  `epoch-${next}>supervisor epoch.started`,
  `epoch-${next}>supervisor epoch.live`,
  `supervisor>epoch-${old} epoch.supersede`,
  `epoch-${old}>supervisor epoch.exited`,
  `epoch-${old} done`,
];
export const begun = (epoch: number): string => `supervisor>epoch-${epoch} spawn`;
export const spawnsOnly = parseDiagram(
  'sequenceDiagram\nparticipant supervisor\nparticipant first as epoch-0\nsupervisor->>first: spawn',
  'first.mmd',
);
