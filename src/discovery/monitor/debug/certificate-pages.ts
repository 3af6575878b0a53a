import { Turns } from '../../../runtime/turns.ts';
import { certificatesView } from '../certificates/known-certificates.ts';
import { type DebugPage, okReply, textReply } from './debug-page.ts';

const [usualLimit, maxLimit] = [50, 1_000];

export const certificatePages: readonly DebugPage[] = [
  {
    path: 'certificates',
    description: 'certificates of workloads, authorities, ports and Secrets, the next to expire first; ?limit=N',
    respond: async ({ certificateSources, state }, { query }) => {
      const limit = Number(query.get('limit') ?? usualLimit);
      if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
        return textReply(`limit: must be an integer from 1 to ${maxLimit}`, 400);
      }
      const sources = { ...certificateSources(limit), secrets: state.configs.set.Secret };
      return okReply(await certificatesView(sources, { now: new Date(), max: limit, turns: new Turns() }));
    },
  },
];
