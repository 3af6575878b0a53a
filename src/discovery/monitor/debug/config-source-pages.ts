/** The page about sources of configuration over xDS. */
import { type DebugPage, ok, text } from './debug-page.ts';

export const configSourcePages: readonly DebugPage[] = [
  {
    path: 'configsourcez',
    description:
      'configuration sources over xDS: connection, objects, paused deletions; POST ?apply=ADDRESS applies these',
    changes: (query) => query.has('apply'),
    answer: ({ configSources }, { query }) => {
      const address = query.get('apply');
      if (address === null) return ok(configSources?.statuses ?? []);
      if (configSources?.confirmDeletions(address) === true) return text('Paused deletions applied');
      return text(`no configuration source ${address}: /debug/configsourcez lists them`, 404);
    },
  },
];
