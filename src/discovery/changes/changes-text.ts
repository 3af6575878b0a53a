import { visibleLine } from '../../runtime/visible-text.ts';
import type { ChangesView, NamedItems, PushView } from './change-view.ts';
import type { UnpushedRejection } from './push-record.ts';

/** Maximum number of names per push without `--all`. */
const shownNames = 10;

export function changesText({ since, pushes, unpushedRejections, kept }: ChangesView, showsAll: boolean): string {
  const maxItems = showsAll ? Number.POSITIVE_INFINITY : shownNames;
  if (since === undefined) return 'no push since the control plane started\n';
  const evictedText = kept.configuration.evicted > 0 ? ', earlier ones were evicted' : '';
  const summaryLine = `${pushes.length} pushes match; the history begins ${since}${evictedText}\n`;
  return (
    summaryLine + pushes.map((push) => pushText(push, maxItems)).join('') + unpushedText(unpushedRejections, maxItems)
  );
}

const receivedTexts: Readonly<Record<UnpushedRejection['receivedOn'], string>> = {
  connect: 'rejected the configuration that it received when it connected',
  request: 'rejected resources that it requested',
};

function unpushedText(rejections: readonly UnpushedRejection[], maxRejections: number): string {
  if (rejections.length === 0) return '';
  const lines = listText(
    '',
    { items: rejections.toReversed() },
    maxRejections,
    ({ at, proxy, receivedOn, type, reason }) => `${at}  ${proxy} ${receivedTexts[receivedOn]}: ${type}: ${reason}`,
  );
  return `\nrejections of responses that no push sent, newest first:\n${lines.join('\n')}\n`;
}

function pushText(push: PushView, maxItems: number): string {
  const { time, objects, services, endpoints, pushedTo, pendingAt, rejections } = push;
  const outputLines = [
    `\n${time}  push ${push.push}: ${changeText(push)}`,
    `  ${proxiesText(push)}`,
    ...listText('', objects, maxItems, ({ kind, namespace, name, change, source, resourceVersion }) => {
      const location = source ?? (resourceVersion ? `resourceVersion ${resourceVersion}` : '');
      return `${change} ${kind} ${namespace === '' ? '' : `${namespace}/`}${name}${location === '' ? '' : `  ${location}`}`;
    }),
    ...listText('service ', services, maxItems, (name) => name),
    ...listText('endpoints ', endpoints, maxItems, (name) => name),
    ...listText('pushed to ', pushedTo, maxItems, (name) => name),
    ...listText('no response from ', pendingAt, maxItems, (name) => name),
    ...listText(
      'rejected by ',
      rejections,
      maxItems,
      ({ proxy, type, reason, at }) => `${proxy} at ${at}: ${type}: ${reason}`,
    ),
  ];
  return `${outputLines.join('\n')}\n`;
}

function changeText({ first, full, objects, services, endpoints, waitedMs }: PushView): string {
  const cause =
    first === true
      ? `first push after the start, ${countOf(objects)} objects`
      : [
          full ? 'everything' : '',
          countText(countOf(objects), 'object'),
          countText(countOf(services), 'service'),
          countText(countOf(endpoints), 'assignment of endpoints', 'assignments of endpoints'),
        ]
          .filter((text) => text !== '')
          .join(', ') || 'no change';
  return waitedMs === undefined ? cause : `${cause}, ${seconds(waitedMs)} after the first change`;
}

function proxiesText({ proxies, answeredMs }: PushView): string {
  const { pushed, acknowledged, rejected, pending, unanswered } = proxies;
  if (pushed === 0) return 'sent to no proxy: it concerns none, or a later push replaced it';
  const countTexts = [
    `${pushed} ${pushed === 1 ? 'proxy' : 'proxies'}: ${acknowledged} acknowledged`,
    rejected > 0 ? `${rejected} rejected` : '',
    pending > 0 ? `${pending} pending` : '',
    unanswered > 0 ? `${unanswered} without response before the next push or disconnect` : '',
    answeredMs === undefined ? '' : `last response after ${seconds(answeredMs)}`,
  ];
  return countTexts.filter((text) => text !== '').join(', ');
}

function listText<Item>(
  label: string,
  { items, more = 0 }: NamedItems<Item>,
  maxItems: number,
  textOfItem: (item: Item) => string,
): string[] {
  const shownItems = items.slice(0, maxItems);
  const omittedCount = items.length - shownItems.length;
  return [
    // Reasons of rejections and names are texts of clients and tenants, which must not forge further lines.
    ...shownItems.map((item) => `  ${label}${visibleLine(textOfItem(item))}`),
    ...(omittedCount + more > 0
      ? [`  ${label}and ${omittedCount + more} more${omittedCount > 0 ? ' (--all)' : ''}`]
      : []),
  ];
}

function countOf({ items, more = 0 }: NamedItems<unknown>): number {
  return items.length + more;
}

function countText(count: number, singular: string, plural = `${singular}s`): string {
  return count === 0 ? '' : `${count} ${count === 1 ? singular : plural}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}
