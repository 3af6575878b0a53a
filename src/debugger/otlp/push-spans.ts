import { text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { RecordedRun } from '../trace/record-list.ts';
import { unfinishedMark } from './restart-spans.ts';
import type { AttributeValue, OtlpSpan } from './span.ts';

interface Group {
  readonly from: number;
  readonly remainingConnections: Set<unknown>;
  readonly proxies: number;
  to?: number;
}

interface Push {
  readonly trace: string;
  readonly from: number;
  readonly build: { readonly from: number; readonly to: number };
  readonly attributes: Record<string, AttributeValue>;
  readonly version: string;
  readonly groups: Group[];
  moreCount: number;
}

/** If each of a thousand proxies is updated separately, a push has a thousand groups. */
const maxGroups = 100;

/** The spans of each push begin with the first change that requested it. */
export function pushSpans({ records }: RecordedRun): OtlpSpan[] {
  const pushes: Push[] = [];
  let requestedAt: number | undefined;
  let buildingPush: { readonly from: number; readonly requestedAt: number; to?: number } | undefined;
  for (const record of records) {
    if (record.kind === 'spawn' && record.actor === 'push/context') {
      buildingPush = { from: record.t, requestedAt: requestedAt ?? record.t };
      requestedAt = undefined;
    }
    if (record.kind === 'stop' && record.actor === 'push/context' && buildingPush !== undefined)
      buildingPush.to = record.t;
    if (record.kind !== 'event') continue;
    if (record.event.type === 'push.request') requestedAt ??= record.t;
    if (record.event.type === 'clients.push') {
      const { from = record.t, to = record.t, requestedAt: requestTime = record.t } = buildingPush ?? {};
      pushes.push(beginPush(record, requestTime, { from, to }));
      buildingPush = undefined;
    }
    followPush(record, pushes);
  }
  const endTime = records.at(-1)?.t ?? 0;
  return pushes.flatMap((push) => spansOf(push, endTime));
}

function beginPush({ event, seq }: TraceRecord & { kind: 'event' }, from: number, build: Push['build']): Push {
  const configs = Array.isArray(event.configs) ? event.configs.length : 0;
  return {
    trace: `push ${seq}`,
    from,
    build,
    version: text(event.version),
    attributes: {
      'chartpilot.push.version': text(event.version),
      'chartpilot.push.forced': event.forced === true,
      'chartpilot.push.configs': configs,
      'chartpilot.trace.seq': seq,
    },
    groups: [],
    moreCount: 0,
  };
}

function followPush({ event, t }: TraceRecord & { kind: 'event' }, pushes: readonly Push[]): void {
  const connections = Array.isArray(event.connections) ? event.connections : [];
  if (event.type === 'proxies.serve') {
    const push = pushes.findLast(({ version }) => version === text(event.version));
    if (push === undefined) return;
    if (push.groups.length >= maxGroups) push.moreCount++;
    else push.groups.push({ from: t, remainingConnections: new Set(connections), proxies: connections.length });
  }
  if (event.type !== 'proxies.served') return;
  // A proxy is in one unfinished group at a time.
  for (const connection of connections) {
    const group = pushes
      .flatMap(({ groups }) => groups)
      .findLast(({ remainingConnections }) => remainingConnections.has(connection));
    group?.remainingConnections.delete(connection);
    if (group?.remainingConnections.size === 0) group.to = t;
  }
}

function spansOf({ trace, from, build, attributes, groups, moreCount }: Push, endTime: number): OtlpSpan[] {
  const to = Math.max(build.to, ...groups.map((group) => group.to ?? endTime));
  const child = (key: string, name: string, span: { from: number; to: number }, more_ = {}): OtlpSpan => ({
    trace,
    key,
    parent: '',
    name,
    ...span,
    attributes: more_,
  });
  return [
    {
      trace,
      key: '',
      name: 'push',
      from,
      to,
      attributes: {
        ...attributes,
        'chartpilot.push.proxies': groups.reduce((sum, { proxies }) => sum + proxies, 0),
        ...(moreCount > 0 && { 'chartpilot.push.groups_left_out': moreCount }),
      },
    },
    child('debounce', 'debounce', { from, to: build.from }),
    child('build', 'build', build),
    ...groups.map((group, i) =>
      child(
        `group ${i}`,
        'serve proxies',
        { from: group.from, to: group.to ?? endTime },
        {
          'chartpilot.push.proxies': group.proxies,
          ...(group.to === undefined && unfinishedMark),
        },
      ),
    ),
  ];
}
