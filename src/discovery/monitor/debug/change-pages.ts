import { type ChangeFilter, changesView } from '../../changes/change-view.ts';
import { parseTime, timeFormats } from '../../changes/moment.ts';
import { type DebugPage, isParameterSet, okReply, type PageRequest, textReply } from './debug-page.ts';

export const changePages: readonly DebugPage[] = [
  {
    path: 'changes',
    description:
      'recent pushes: changed objects, proxies, rejections; ?since=14:00&until=14:10 (UTC), &object=TEXT, &proxy=TEXT, &rejected, &endpoints',
    respond: ({ history, resources }, { query }) => {
      const filter = filterOf(query, Date.now());
      return 'invalid' in filter
        ? textReply(`${filter.invalid}: must be ${timeFormats}`, 400)
        : okReply(changesView(history, () => resources.nodes, filter));
    },
  },
];

function filterOf(query: PageRequest['query'], now: number): ChangeFilter | { readonly invalid: string } {
  const timeRange: { since?: number; until?: number } = {};
  for (const name of ['since', 'until'] as const) {
    const timeText = query.get(name);
    if (timeText === null || timeText === '') continue;
    const timeMs = parseTime(timeText, now);
    if (timeMs === undefined) return { invalid: name };
    timeRange[name] = timeMs;
  }
  const [object, proxy] = [query.get('object'), query.get('proxy')];
  return {
    ...timeRange,
    ...(object && { object }),
    ...(proxy && { proxy }),
    rejected: isParameterSet(query.get('rejected')),
    endpoints: isParameterSet(query.get('endpoints')),
  };
}
