import { type DebugPage, okReply, textReply } from './debug-page.ts';

export const configSourcePages: readonly DebugPage[] = [
  {
    path: 'configsourcez',
    description:
      'configuration sources over xDS: connection, objects, paused deletions; POST ?apply=ADDRESS applies these',
    changes: (query) => query.has('apply'),
    respond: ({ configSources }, { query }) => {
      const address = query.get('apply');
      if (address === null) return okReply(configSources?.statuses ?? []);
      if (configSources?.confirmDeletions(address) === true) return textReply('Paused deletions applied');
      return textReply(`no configuration source ${address}: /debug/configsourcez lists them`, 404);
    },
  },
];
